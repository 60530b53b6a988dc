/* tree.h - ordered sets of small indexes with ranks: a treap whose links live in the records.
 *
 * Pure; core thread only. The set does not own its members; a member is in one set per `struct
 * links` it has. What orders the members must not change while they are in. Private to src/sched.
 */
#ifndef ACRE_SCHED_TREE_H
#define ACRE_SCHED_TREE_H

#include "core/base.h"

#define TREE_NONE UINT32_MAX

struct tree_links {
    uint32_t left, right;
    uint32_t size;  /* of this subtree */
    uint32_t least; /* of the members' values in this subtree */
};

struct tree {
    uint32_t root; /* TREE_NONE: empty */
};

/* How the members of a set are reached and ordered. */
struct tree_kind {
    struct tree_links *(*links)(void *context, uint32_t member);
    bool (*is_before)(const void *context, uint32_t a, uint32_t b); /* a strict order */
    uint32_t (*value)(const void *context, uint32_t member);        /* NULL: 0 */
};

/* The order of most sets: by key, then by id. */
static inline bool key_precedes(int64_t key, uint64_t id, int64_t other_key, uint64_t other_id) {
    return key != other_key ? key < other_key : id < other_id;
}

void tree_insert(const struct tree_kind *kind, void *context, struct tree *tree, uint32_t member);
void tree_remove(const struct tree_kind *kind, void *context, struct tree *tree, uint32_t member);
/* The value of a member changed: bring the sums above it up to date. */
void tree_refresh(const struct tree_kind *kind, void *context, struct tree *tree, uint32_t member);

uint32_t tree_size(const struct tree_kind *kind, void *context, const struct tree *tree);
uint32_t tree_first(const struct tree_kind *kind, void *context, const struct tree *tree);
/* How many members are before this one. */
uint32_t tree_rank(const struct tree_kind *kind, void *context, const struct tree *tree,
                   uint32_t member);
/* The member at `rank`; TREE_NONE past the end. */
uint32_t tree_at(const struct tree_kind *kind, void *context, const struct tree *tree,
                 uint32_t rank);
/* The least of all values; UINT32_MAX when empty. */
uint32_t tree_least(const struct tree_kind *kind, void *context, const struct tree *tree);
/* The first member whose value is at most `most`; TREE_NONE when there is none. */
uint32_t tree_first_within(const struct tree_kind *kind, void *context, const struct tree *tree,
                           uint32_t most);
/* Every member in order, until `visit` returns false; it must not change the set. */
void tree_visit(const struct tree_kind *kind, void *context, const struct tree *tree,
                bool (*visit)(void *visitor, uint32_t member), void *visitor);

#endif
