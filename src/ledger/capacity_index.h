/* capacity_index.h - nodes ordered by a key, answering "the best ranked node whose key is at
 * least this" in the depth of a tree.
 *
 * Private to capacity*.c. Holds node numbers only: key and rank of a node are asked from the
 * caller through `facts`. When they change the caller says so at once, with the key it had
 * before: move (or insert, or remove). One thread at a time. */
#ifndef ACRE_LEDGER_CAPACITY_INDEX_H
#define ACRE_LEDGER_CAPACITY_INDEX_H

#include "ledger/capacity.h"

enum { ACRE_CAPACITY_KEY_BITS = 52 }; /* 32 of MiB, 20 of node; also the depth of the tree */

struct capacity_facts {
    const void *context;
    uint64_t (*key)(const void *context, uint32_t node);
    struct acre_capacity_rank (*rank)(const void *context, uint32_t node);
};

struct capacity_branch;

struct capacity_index {
    struct capacity_facts facts;
    struct capacity_branch *branches;
    uint32_t branch_count; /* in `branches`, free ones too */
    uint32_t branch_capacity;
    uint32_t free_branch;
    uint32_t root;
};

void capacity_index_init(struct capacity_index *index, struct capacity_facts facts);
void capacity_index_finish(struct capacity_index *index);
size_t capacity_index_bytes(const struct capacity_index *index);

void capacity_index_insert(struct capacity_index *index, uint32_t node);
void capacity_index_remove(struct capacity_index *index, uint32_t node, uint64_t old_key);
void capacity_index_move(struct capacity_index *index, uint32_t node, uint64_t old_key);

/* ACRE_CAPACITY_NO_NODE when there is none. `accept` may be NULL: every node. */
uint32_t capacity_index_best(const struct capacity_index *index, uint64_t min_key,
                             acre_capacity_accept *accept, void *context);
uint32_t capacity_index_last(const struct capacity_index *index); /* the highest key */

bool capacity_rank_better(struct acre_capacity_rank a, struct acre_capacity_rank b);

#endif
