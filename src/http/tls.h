/* tls.h - TLS between two memory buffers: bytes in, other bytes out; no socket.
 *
 * Inside src/api only; loop thread only. TLS 1.2 and 1.3, no renegotiation, no client
 * certificates. */
#ifndef ACRE_HTTP_TLS_H
#define ACRE_HTTP_TLS_H

#include "core/error.h"
#include "core/str.h"

struct ssl_ctx_st; /* OpenSSL's, so that only tls.c includes it */
struct acre_tls;

int acre_tls_setup(const char *certificate_pem, const char *key_pem, struct ssl_ctx_st **ret_setup,
                   struct acre_error *err);
void acre_tls_setup_free(struct ssl_ctx_st *setup); /* NULL is fine */
struct acre_tls *acre_tls_create(struct ssl_ctx_st *setup);
void acre_tls_destroy(struct acre_tls *tls); /* NULL is fine */
/* Give it what came from the client. */
void acre_tls_put(struct acre_tls *tls, const void *bytes, size_t length);
/* Plain bytes for us: > 0, 0 none yet, -1 the end or broken. */
int acre_tls_read(struct acre_tls *tls, void *bytes, size_t size);
/* Encrypt; false: broken. */
bool acre_tls_write(struct acre_tls *tls, const void *bytes, size_t length);
void acre_tls_close(struct acre_tls *tls); /* say goodbye */
/* Bytes for the client, until acre_tls_sent. */
struct acre_str acre_tls_pending(struct acre_tls *tls);
void acre_tls_sent(struct acre_tls *tls, size_t length);
bool acre_tls_is_shaking(const struct acre_tls *tls); /* the handshake is not complete */
bool acre_tls_has_input(const struct acre_tls *tls);  /* there may be more to read */

#endif
