/* audit.h - the hash chain over the audit trail. Private to src/store.
 *
 * One thread at a time per hasher. It proves that the records are those that were written, in
 * that order and number; anyone who can write the database can also write a new chain, so a head
 * that is to convince an outsider has to be kept elsewhere (acre_store_verify_audit returns it).
 */
#ifndef ACRE_STORE_AUDIT_H
#define ACRE_STORE_AUDIT_H

#include "core/error.h"
#include "store/rows.h"

enum { ACRE_AUDIT_HASH_BYTES = 32 };

/* Where the chain ends. Before the first record: 0 and zeros. */
struct audit_head {
    uint64_t count; /* seq of the last record */
    uint8_t hash[ACRE_AUDIT_HASH_BYTES];
};

struct audit_hasher;

struct audit_hasher *audit_hasher_create(void);
void audit_hasher_destroy(struct audit_hasher *hasher); /* NULL is fine */

/* Put one more record at the end; its own seq and hash are not looked at. */
void audit_extend(struct audit_hasher *hasher, struct audit_head *head,
                  const struct acre_store_audit *audit);

/* Check a trail: begin, then every record in the order of seq (false: bad, stop), then end with
 * the head that was kept. ACRE_ECORRUPT names the first bad record. */
struct audit_check {
    struct audit_hasher *hasher;
    struct audit_head head; /* of the records seen, as they should be */
    uint64_t bad_seq;
    const char *why; /* NULL: all good so far */
};
void audit_check_begin(struct audit_check *check);
bool audit_check_record(void *check, const struct acre_store_audit *audit); /* a visit */
int audit_check_end(struct audit_check *check, const struct audit_head *kept,
                    struct acre_error *err);

#endif
