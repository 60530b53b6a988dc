/* tls.c - OpenSSL between two memory buffers; it never sees a socket.
 *
 * So the connection reads and writes its socket in one way, with or without TLS, and OpenSSL cannot
 * raise SIGPIPE. What is encrypted at a time is what the socket takes (conn.c hands over one
 * record, sends it, and only then the next), so a large answer is not held twice. */
#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>

struct tls {
    SSL *ssl;
    BIO *from_client, *to_client; /* owned by ssl */
    bool broken;
};

static int fail_tls(struct acre_error *err, const char *what) {
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    acre_fail(err, ACRE_EINVALID, "%s: %s; accepted: a file in PEM format", what,
              reason != NULL ? reason : "cannot be used");
    ERR_clear_error();
    return ACRE_EINVALID;
}

/* The first certificate is ours, the others lead to the root. */
static int use_certificates(SSL_CTX *setup, const char *pem, struct acre_error *err) {
    BIO *bio = BIO_new_mem_buf(pem, -1);
    ACRE_ASSERT(bio != NULL);
    X509 *own = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    bool ok = own != NULL && SSL_CTX_use_certificate(setup, own) == 1;
    X509_free(own);
    while (ok) {
        X509 *next = PEM_read_bio_X509(bio, NULL, NULL, NULL);
        if (next == NULL) {
            ERR_clear_error(); /* the end of the text */
            break;
        }
        ok = SSL_CTX_add0_chain_cert(setup, next) == 1;
    }
    BIO_free(bio);
    return ok ? 0 : fail_tls(err, "certificate");
}

static int use_key(SSL_CTX *setup, const char *pem, struct acre_error *err) {
    BIO *bio = BIO_new_mem_buf(pem, -1);
    ACRE_ASSERT(bio != NULL);
    char no_password[] = ""; /* a daemon has nobody to ask */
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, no_password);
    bool ok = key != NULL && SSL_CTX_use_PrivateKey(setup, key) == 1 &&
              SSL_CTX_check_private_key(setup) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok ? 0 : fail_tls(err, "key");
}

int tls_setup(const char *certificate_pem, const char *key_pem, struct ssl_ctx_st **ret_setup,
              struct acre_error *err) {
    if (certificate_pem == NULL || key_pem == NULL) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: required; TLS needs both a certificate and its key",
                         certificate_pem == NULL ? "certificate" : "key");
    }
    SSL_CTX *setup = SSL_CTX_new(TLS_server_method());
    if (setup == NULL) {
        return fail_tls(err, "TLS");
    }
    SSL_CTX_set_min_proto_version(setup, TLS1_2_VERSION);
    SSL_CTX_set_options(setup, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(setup, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(setup, SSL_SESS_CACHE_OFF);
    int r = use_certificates(setup, certificate_pem, err);
    if (r == 0) {
        r = use_key(setup, key_pem, err);
    }
    if (r < 0) {
        SSL_CTX_free(setup);
        return r;
    }
    *ret_setup = setup;
    return 0;
}

void tls_setup_free(struct ssl_ctx_st *setup) {
    SSL_CTX_free(setup);
}

struct tls *tls_create(struct ssl_ctx_st *setup) {
    struct tls *tls = acre_calloc(1, sizeof(*tls));
    tls->ssl = SSL_new(setup);
    tls->from_client = BIO_new(BIO_s_mem());
    tls->to_client = BIO_new(BIO_s_mem());
    ACRE_ASSERT(tls->ssl != NULL && tls->from_client != NULL && tls->to_client != NULL);
    SSL_set_bio(tls->ssl, tls->from_client, tls->to_client);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

void tls_destroy(struct tls *tls) {
    if (tls != NULL) {
        SSL_free(tls->ssl);
        free(tls);
    }
}

void tls_put(struct tls *tls, const void *bytes, size_t length) {
    int written = BIO_write(tls->from_client, bytes, (int)length);
    ACRE_ASSERT(written == (int)length);
}

int tls_read(struct tls *tls, void *bytes, size_t size) {
    if (tls->broken) {
        return -1;
    }
    ERR_clear_error();
    int r = SSL_read(tls->ssl, bytes, (int)size);
    if (r > 0) {
        return r;
    }
    int why = SSL_get_error(tls->ssl, r);
    if (why == SSL_ERROR_WANT_READ) {
        return 0;
    }
    tls->broken = why != SSL_ERROR_ZERO_RETURN; /* the client may still want our answer */
    ERR_clear_error();
    return -1;
}

bool tls_write(struct tls *tls, const void *bytes, size_t length) {
    if (tls->broken) {
        return false;
    }
    ERR_clear_error();
    int r = SSL_write(tls->ssl, bytes, (int)length);
    tls->broken = r != (int)length; /* a memory buffer takes it all */
    ERR_clear_error();
    return !tls->broken;
}

void tls_close(struct tls *tls) {
    if (!tls->broken && SSL_is_init_finished(tls->ssl)) {
        ERR_clear_error();
        SSL_shutdown(tls->ssl);
        ERR_clear_error();
    }
}

struct acre_str tls_pending(struct tls *tls) {
    char *bytes = NULL;
    long length = BIO_get_mem_data(tls->to_client, &bytes);
    return (struct acre_str){bytes, length > 0 ? (size_t)length : 0};
}

void tls_sent(struct tls *tls, size_t length) {
    char discard[4096];
    while (length > 0) { /* reading is how a memory BIO forgets */
        int r = BIO_read(tls->to_client, discard, (int)ACRE_MIN(length, sizeof(discard)));
        ACRE_ASSERT(r > 0);
        length -= (size_t)r;
    }
}

bool tls_has_input(const struct tls *tls) {
    return SSL_pending(tls->ssl) > 0 || BIO_ctrl_pending(tls->from_client) > 0;
}

bool tls_is_shaking(const struct tls *tls) {
    return !tls->broken && !SSL_is_init_finished(tls->ssl);
}
