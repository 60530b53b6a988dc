/* capacity_index.c - a binary radix tree (crit-bit) whose branches know the best of their nodes.
 *
 * Each branch names the highest bit in which the keys below it differ, so a tree of n keys has
 * n - 1 branches and no path is longer than the key has bits: 52, whatever the keys, and about
 * log2 n for keys as they come. That bound is why this tree and not a treap or a red-black one:
 * no rotations, no priorities, no recursion without limit, and the path fits a small array.
 *
 *   insert  walk down, raising each branch's best where the new node beats it: no way back up.
 *   remove  walk down, splice the branch out, then mend the best upwards only as far as the
 *           removed node was the best, which is two branches on average.
 *   move    mend in place when only the rank changed; else out and in again.
 *   best    the keys >= min_key are at most one subtree per bit: the right-hand children along
 *           min_key's path. The answer is the best of their bests.
 *   where   the same subtrees, searched better child first; a subtree whose best cannot beat
 *           what was already accepted is not entered.
 *
 * Branches skip the bits in which their keys agree, so walking by min_key can end among keys that
 * do not share its prefix. The leaf reached gives the first differing bit; a second walk stops
 * there, and the whole subtree at that place is above or below min_key. */
#include "ledger/capacity_index.h"

#include <stdlib.h>

/* The best node of a subtree, with its score rounded: rounding keeps the order, so unequal scores
 * decide without looking at the nodes, and equal ones are settled by the exact ranks. */
struct mark {
    float score;
    uint32_t node;
};

/* 16 bytes, four to a cache line: the walks are as fast as memory brings these. A child with LEAF
 * set is a node, else a branch. */
struct capacity_branch {
    float score;
    uint32_t node : 24;
    uint32_t bit : 8;
    uint32_t child[2];
};

#define LEAF UINT32_C(0x80000000)
#define NONE UINT32_MAX

_Static_assert(sizeof(struct capacity_branch) == 16, "memory per node is a promise");
_Static_assert(ACRE_CAPACITY_NODES_MAX <= 1 << 20, "a key has 20 bits for the node");

void capacity_index_init(struct capacity_index *index, struct capacity_facts facts) {
    *index = (struct capacity_index){.facts = facts, .free_branch = NONE, .root = NONE};
}

void capacity_index_finish(struct capacity_index *index) {
    free(index->branches);
    capacity_index_init(index, index->facts);
}

size_t capacity_index_bytes(const struct capacity_index *index) {
    return index->branch_capacity * sizeof(*index->branches);
}

bool capacity_rank_better(struct acre_capacity_rank a, struct acre_capacity_rank b) {
    if (a.score != b.score) {
        return a.score > b.score;
    }
    if (a.queue_depth != b.queue_depth) {
        return a.queue_depth < b.queue_depth;
    }
    return a.node < b.node;
}

static bool is_leaf(uint32_t at) {
    return (at & LEAF) != 0;
}

static uint64_t key_of(const struct capacity_index *index, uint32_t node) {
    return index->facts.key(index->facts.context, node);
}

static struct acre_capacity_rank rank_of(const struct capacity_index *index, uint32_t node) {
    return index->facts.rank(index->facts.context, node);
}

static struct mark mark_of(const struct capacity_branch *branch) {
    return (struct mark){branch->score, branch->node};
}

static struct mark mark_at(const struct capacity_index *index, uint32_t at) {
    if (!is_leaf(at)) {
        return mark_of(&index->branches[at]);
    }
    return (struct mark){(float)rank_of(index, at & ~LEAF).score, at & ~LEAF};
}

static bool better(const struct capacity_index *index, struct mark a, struct mark b) {
    if (a.score != b.score) {
        return a.score > b.score;
    }
    return capacity_rank_better(rank_of(index, a.node), rank_of(index, b.node));
}

static void set_mark(struct capacity_branch *branch, struct mark mark) {
    branch->score = mark.score;
    branch->node = mark.node & 0xffffff;
}

static uint32_t take_branch(struct capacity_index *index) {
    if (index->free_branch != NONE) {
        uint32_t at = index->free_branch;
        index->free_branch = index->branches[at].child[0];
        return at;
    }
    if (index->branch_count == index->branch_capacity) {
        index->branch_capacity += index->branch_capacity / 8 + 16;
        index->branches =
            acre_realloc(index->branches, index->branch_capacity, sizeof(*index->branches));
    }
    return index->branch_count++;
}

static unsigned bit_of(uint64_t key, unsigned bit) {
    return (unsigned)(key >> bit) & 1;
}

static unsigned highest_bit(uint64_t value) {
    return 63 - (unsigned)__builtin_clzll(value);
}

/* The node a walk by `key` ends at: it shares with `key` all that any key in the tree does. */
static uint32_t nearest(const struct capacity_index *index, uint64_t key) {
    uint32_t at = index->root;
    while (!is_leaf(at)) {
        at = index->branches[at].child[bit_of(key, index->branches[at].bit)];
    }
    return at & ~LEAF;
}

void capacity_index_insert(struct capacity_index *index, uint32_t node) {
    ACRE_ASSERT(node < ACRE_CAPACITY_NODES_MAX);
    if (index->root == NONE) {
        index->root = node | LEAF;
        return;
    }
    uint64_t key = key_of(index, node);
    uint64_t differing = key ^ key_of(index, nearest(index, key));
    ACRE_ASSERT(differing != 0); /* inserted twice */
    unsigned bit = highest_bit(differing);
    struct mark mark = mark_at(index, node | LEAF);
    uint32_t fresh = take_branch(index);
    uint32_t *link = &index->root;
    while (!is_leaf(*link) && index->branches[*link].bit > bit) {
        struct capacity_branch *branch = &index->branches[*link];
        if (better(index, mark, mark_of(branch))) {
            set_mark(branch, mark);
        }
        link = &branch->child[bit_of(key, branch->bit)];
    }
    struct mark other = mark_at(index, *link);
    struct capacity_branch *branch = &index->branches[fresh];
    branch->bit = bit & 0xff;
    branch->child[bit_of(key, bit)] = node | LEAF;
    branch->child[!bit_of(key, bit)] = *link;
    set_mark(branch, better(index, mark, other) ? mark : other);
    *link = fresh;
}

/* `node` was removed (`mark` NULL) or has a new rank: choose the best again along `path`, from
 * below, up to the first branch where it was not the best and is not now. */
static void mend(struct capacity_index *index, const uint32_t *path, unsigned depth, uint32_t node,
                 const struct mark *mark) {
    while (depth > 0) {
        struct capacity_branch *branch = &index->branches[path[--depth]];
        if (branch->node == node) {
            struct mark a = mark_at(index, branch->child[0]);
            struct mark b = mark_at(index, branch->child[1]);
            set_mark(branch, better(index, a, b) ? a : b);
        } else if (mark != NULL && better(index, *mark, mark_of(branch))) {
            set_mark(branch, *mark);
        } else {
            return;
        }
    }
}

/* The branches on the way to `node`, the root first; returns how many. */
static unsigned walk_to(const struct capacity_index *index, uint32_t node, uint64_t key,
                        uint32_t path[ACRE_CAPACITY_KEY_BITS]) {
    ACRE_ASSERT(index->root != NONE);
    unsigned depth = 0;
    uint32_t at = index->root;
    while (!is_leaf(at)) {
        ACRE_ASSERT(depth < ACRE_CAPACITY_KEY_BITS);
        path[depth++] = at;
        at = index->branches[at].child[bit_of(key, index->branches[at].bit)];
    }
    ACRE_ASSERT((at & ~LEAF) == node); /* never inserted, or with another key */
    return depth;
}

void capacity_index_remove(struct capacity_index *index, uint32_t node, uint64_t old_key) {
    uint32_t path[ACRE_CAPACITY_KEY_BITS];
    unsigned depth = walk_to(index, node, old_key, path);
    if (depth == 0) {
        index->root = NONE;
        return;
    }
    uint32_t gone = path[--depth];
    struct capacity_branch *branch = &index->branches[gone];
    uint32_t sibling = branch->child[!bit_of(old_key, branch->bit)];
    if (depth == 0) {
        index->root = sibling;
    } else {
        struct capacity_branch *above = &index->branches[path[depth - 1]];
        above->child[bit_of(old_key, above->bit)] = sibling;
    }
    branch->child[0] = index->free_branch;
    index->free_branch = gone;
    mend(index, path, depth, node, NULL);
}

void capacity_index_move(struct capacity_index *index, uint32_t node, uint64_t old_key) {
    uint64_t key = key_of(index, node);
    if (key == old_key) {
        uint32_t path[ACRE_CAPACITY_KEY_BITS];
        struct mark mark = mark_at(index, node | LEAF);
        mend(index, path, walk_to(index, node, key, path), node, &mark);
        return;
    }
    capacity_index_remove(index, node, old_key);
    capacity_index_insert(index, node);
}

/* The subtrees that hold exactly the keys >= min_key. */
static unsigned suffix(const struct capacity_index *index, uint64_t min_key,
                       uint32_t subtrees[ACRE_CAPACITY_KEY_BITS + 1]) {
    if (index->root == NONE || min_key >> ACRE_CAPACITY_KEY_BITS != 0) {
        return 0;
    }
    uint64_t differing = min_key ^ key_of(index, nearest(index, min_key));
    unsigned count = 0;
    uint32_t at = index->root;
    while (!is_leaf(at) && differing >> index->branches[at].bit == 0) {
        const struct capacity_branch *branch = &index->branches[at];
        if (bit_of(min_key, branch->bit) == 0) {
            subtrees[count++] = branch->child[1];
        }
        at = branch->child[bit_of(min_key, branch->bit)];
    }
    if (differing == 0 || bit_of(min_key, highest_bit(differing)) == 0) {
        subtrees[count++] = at;
    }
    return count;
}

struct capacity_search {
    const struct capacity_index *index;
    acre_capacity_accept *accept;
    void *context;
    struct mark best; /* node NONE: nothing accepted yet */
};

/* As deep as the tree: 52 levels at most. */
static void search_under(struct capacity_search *search, uint32_t at) {
    struct mark mark = mark_at(search->index, at);
    if (search->best.node != NONE && !better(search->index, mark, search->best)) {
        return;
    }
    if (is_leaf(at) || search->accept == NULL) {
        if (search->accept == NULL || search->accept(search->context, mark.node)) {
            search->best = mark;
        }
        return;
    }
    const uint32_t *child = search->index->branches[at].child;
    bool second_first =
        better(search->index, mark_at(search->index, child[1]), mark_at(search->index, child[0]));
    search_under(search, child[second_first]);
    search_under(search, child[!second_first]);
}

uint32_t capacity_index_best(const struct capacity_index *index, uint64_t min_key,
                             acre_capacity_accept *accept, void *context) {
    uint32_t subtrees[ACRE_CAPACITY_KEY_BITS + 1];
    unsigned count = suffix(index, min_key, subtrees);
    struct capacity_search search = {index, accept, context, {.node = NONE}};
    for (unsigned i = 0; i < count; i++) {
        search_under(&search, subtrees[i]);
    }
    return search.best.node;
}

uint32_t capacity_index_last(const struct capacity_index *index) {
    if (index->root == NONE) {
        return ACRE_CAPACITY_NO_NODE;
    }
    uint32_t at = index->root;
    while (!is_leaf(at)) {
        at = index->branches[at].child[1];
    }
    return at & ~LEAF;
}
