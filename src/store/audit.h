/* audit.h - the hash chain over the audit trail. Private to src/store.
 *
 * One thread at a time per hasher. It proves that the records are those that were written, in
 * that order and number; whoever can write the database can also write a new chain, so a head
 * that is to convince an outsider has to be kept elsewhere (acre_store_verify_audit returns it).
 */
#ifndef ACRE_STORE_AUDIT_H
#define ACRE_STORE_AUDIT_H

#include "core/error.h"
#include "store/record.h"

enum { ACRE_AUDIT_HASH_BYTES = 32 };

/* Where the chain ends. Before the first record: 0 and zeros. */
struct acre_audit_head {
    uint64_t count; /* seq of the last record */
    uint8_t hash[ACRE_AUDIT_HASH_BYTES];
};

struct acre_audit_hasher;

struct acre_audit_hasher *acre_audit_hasher_create(void);
void acre_audit_hasher_destroy(struct acre_audit_hasher *hasher); /* NULL is fine */

/* Put one more record at the end; its own seq and hash are not looked at. */
void acre_audit_extend(struct acre_audit_hasher *hasher, struct acre_audit_head *head,
                       const struct acre_store_audit *audit);

/* Check a trail: begin, then every record in the order of seq (false: bad, stop), then end with
 * the head that was kept. ACRE_ECORRUPT names the first bad record. */
struct acre_audit_check {
    struct acre_audit_hasher *hasher;
    struct acre_audit_head head; /* of the records seen, as they should be */
    uint64_t bad_seq;
    const char *why; /* NULL: all good so far */
};
void acre_audit_check_begin(struct acre_audit_check *check);
bool acre_audit_check_record(void *check, const struct acre_store_audit *audit); /* a visit */
int acre_audit_check_end(struct acre_audit_check *check, const struct acre_audit_head *kept,
                         struct acre_error *err);

#endif
