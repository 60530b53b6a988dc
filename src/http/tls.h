/* tls.h - TLS between two memory buffers: bytes in, other bytes out; no socket.
 *
 * Inside src/api only; loop thread only. TLS 1.2 and 1.3, no renegotiation, no client
 * certificates. */
#ifndef ACRE_HTTP_TLS_H
#define ACRE_HTTP_TLS_H

#include "core/error.h"
#include "core/str.h"

struct ssl_ctx_st; /* OpenSSL's, so that only tls.c includes it */
struct tls;

int tls_setup(const char *certificate_pem, const char *key_pem, struct ssl_ctx_st **ret_setup,
              struct acre_error *err);
void tls_setup_free(struct ssl_ctx_st *setup); /* NULL is fine */
struct tls *tls_create(struct ssl_ctx_st *setup);
void tls_destroy(struct tls *tls); /* NULL is fine */
/* Give it what came from the client. */
void tls_put(struct tls *tls, const void *bytes, size_t length);
/* Plain bytes for us: > 0, 0 none yet, -1 the end or broken. */
int tls_read(struct tls *tls, void *bytes, size_t size);
/* Encrypt; false: broken. */
bool tls_write(struct tls *tls, const void *bytes, size_t length);
void tls_close(struct tls *tls); /* say goodbye */
/* Bytes for the client, until tls_sent. */
struct acre_str tls_pending(struct tls *tls);
void tls_sent(struct tls *tls, size_t length);
bool tls_is_shaking(const struct tls *tls); /* the handshake is not complete */
bool tls_has_input(const struct tls *tls);  /* there may be more to read */

#endif
