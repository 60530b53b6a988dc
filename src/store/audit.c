/* audit.c - hash = SHA-256(hash before ‖ seq ‖ at_ms ‖ for each text: length ‖ bytes).
 *
 * Numbers are 8 bytes, lengths 4, little end first. With the lengths, no two different records
 * give the same bytes ("ab","c" and "a","bc" do not). The count and the last hash are also kept
 * apart from the records, in the same transaction: a chain alone does not show that its end was
 * cut off.
 *
 * The digest's context and algorithm are fetched once: looking the algorithm up costs more than
 * hashing a record. */
#include "store/audit.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct audit_hasher {
    EVP_MD *sha256;
    EVP_MD_CTX *context;
};

struct audit_hasher *audit_hasher_create(void) {
    struct audit_hasher *hasher = acre_calloc(1, sizeof(*hasher));
    hasher->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    hasher->context = EVP_MD_CTX_new();
    ACRE_ASSERT(hasher->sha256 != NULL && hasher->context != NULL);
    return hasher;
}

void audit_hasher_destroy(struct audit_hasher *hasher) {
    if (hasher != NULL) {
        EVP_MD_CTX_free(hasher->context);
        EVP_MD_free(hasher->sha256);
        free(hasher);
    }
}

static void add_bytes(struct audit_hasher *hasher, const void *bytes, size_t length) {
    int ok = EVP_DigestUpdate(hasher->context, bytes, length);
    ACRE_ASSERT(ok == 1);
}

static void add_number(struct audit_hasher *hasher, uint64_t value, size_t width) {
    uint8_t bytes[8];
    for (size_t i = 0; i < width; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    add_bytes(hasher, bytes, width);
}

static void add_text(struct audit_hasher *hasher, const char *text) {
    struct acre_str view = acre_str_from(text);
    ACRE_ASSERT(view.length <= UINT32_MAX);
    add_number(hasher, view.length, 4);
    add_bytes(hasher, view.data, view.length);
}

void audit_extend(struct audit_hasher *hasher, struct audit_head *head,
                  const struct acre_store_audit *audit) {
    int ok = EVP_DigestInit_ex2(hasher->context, hasher->sha256, NULL);
    ACRE_ASSERT(ok == 1);
    head->count++;
    add_bytes(hasher, head->hash, sizeof(head->hash));
    add_number(hasher, head->count, 8);
    add_number(hasher, audit->at_ms, 8);
    add_text(hasher, audit->actor);
    add_text(hasher, audit->origin);
    add_text(hasher, audit->action);
    add_text(hasher, audit->target);
    add_text(hasher, audit->result);
    add_text(hasher, audit->detail);
    unsigned length = 0;
    ok = EVP_DigestFinal_ex(hasher->context, head->hash, &length);
    ACRE_ASSERT(ok == 1 && length == ACRE_AUDIT_HASH_BYTES);
}

void audit_check_begin(struct audit_check *check) {
    *check = (struct audit_check){.hasher = audit_hasher_create()};
}

bool audit_check_record(void *context, const struct acre_store_audit *audit) {
    struct audit_check *check = context;
    uint64_t expected = check->head.count + 1;
    if (audit->seq != expected) { /* larger: in order, each once */
        check->bad_seq = ACRE_MIN(expected, audit->seq);
        check->why = audit->seq > expected ? "is missing" : "was inserted";
        return false;
    }
    audit_extend(check->hasher, &check->head, audit);
    if (memcmp(check->head.hash, audit->hash, sizeof(audit->hash)) != 0) {
        check->bad_seq = expected;
        check->why = "does not match the record before it";
        return false;
    }
    return true;
}

int audit_check_end(struct audit_check *check, const struct audit_head *kept,
                    struct acre_error *err) {
    audit_hasher_destroy(check->hasher);
    check->hasher = NULL;
    if (check->why == NULL && check->head.count < kept->count) {
        check->bad_seq = check->head.count + 1;
        check->why = "and the rest are missing";
    } else if (check->why == NULL && check->head.count > kept->count) {
        check->bad_seq = kept->count + 1;
        check->why = "was added at the end";
    } else if (check->why == NULL &&
               memcmp(check->head.hash, kept->hash, sizeof(kept->hash)) != 0) {
        check->bad_seq = kept->count;
        check->why = "is not the one that was written";
    }
    if (check->why == NULL) {
        return 0;
    }
    return acre_fail(err, ACRE_ECORRUPT,
                     "audit: record %" PRIu64 " %s (there should be %" PRIu64
                     " records); the trail was changed after it was written",
                     check->bad_seq, check->why, kept->count);
}
