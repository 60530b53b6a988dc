/* tree.c - a treap: a search tree by order that is a heap by weight.
 *
 * Weights are a hash of the member's index, so nothing is stored for them and the shape depends on
 * the members alone, not on the order in which they came; the expected depth is 2 ln n (28 for a
 * million). Chosen over red-black trees because split and merge are all there is to get right, and
 * sums (size, least) are brought up to date on the way back. No parent links: every operation
 * starts at the root and finds its member by order. */
#include "sched/tree.h"

static uint32_t weight_of(uint32_t member) {
    uint32_t x = member + 1;
    x = (x ^ x >> 16) * UINT32_C(0x7feb352d);
    x = (x ^ x >> 15) * UINT32_C(0x846ca68b);
    return x ^ x >> 16; /* a bijection: no two members weigh the same */
}

struct tree_view {
    const struct tree_kind *kind;
    void *context;
};

static struct tree_links *links_of(const struct tree_view *view, uint32_t member) {
    return view->kind->links(view->context, member);
}

static uint32_t value_of(const struct tree_view *view, uint32_t member) {
    return view->kind->value != NULL ? view->kind->value(view->context, member) : 0;
}

/* Sums of a member from its children. */
static void sum_up(const struct tree_view *view, uint32_t member) {
    struct tree_links *links = links_of(view, member);
    links->size = 1;
    links->least = value_of(view, member);
    const uint32_t children[] = {links->left, links->right};
    for (size_t i = 0; i < ACRE_COUNT(children); i++) {
        if (children[i] != TREE_NONE) {
            const struct tree_links *child = links_of(view, children[i]);
            links->size += child->size;
            links->least = ACRE_MIN(links->least, child->least);
        }
    }
}

/* Cut the subtree `at` into what is before `member` and the rest. */
static void split(const struct tree_view *view, uint32_t at, uint32_t member, uint32_t *ret_before,
                  uint32_t *ret_after) {
    if (at == TREE_NONE) {
        *ret_before = *ret_after = TREE_NONE;
        return;
    }
    struct tree_links *links = links_of(view, at);
    if (view->kind->is_before(view->context, at, member)) {
        split(view, links->right, member, &links->right, ret_after);
        *ret_before = at;
    } else {
        split(view, links->left, member, ret_before, &links->left);
        *ret_after = at;
    }
    sum_up(view, at);
}

/* All of `a` is before all of `b`. */
static uint32_t merge(const struct tree_view *view, uint32_t a, uint32_t b) {
    if (a == TREE_NONE || b == TREE_NONE) {
        return a == TREE_NONE ? b : a;
    }
    if (weight_of(a) > weight_of(b)) {
        struct tree_links *links = links_of(view, a);
        links->right = merge(view, links->right, b);
        sum_up(view, a);
        return a;
    }
    struct tree_links *links = links_of(view, b);
    links->left = merge(view, a, links->left);
    sum_up(view, b);
    return b;
}

void tree_insert(const struct tree_kind *kind, void *context, struct tree *tree, uint32_t member) {
    struct tree_view view = {kind, context};
    uint32_t weight = weight_of(member);
    uint32_t value = value_of(&view, member);
    uint32_t *where = &tree->root;
    while (*where != TREE_NONE && weight_of(*where) > weight) {
        struct tree_links *links = links_of(&view, *where);
        links->size++;
        links->least = ACRE_MIN(links->least, value);
        ACRE_ASSERT(*where != member);
        where = kind->is_before(context, member, *where) ? &links->left : &links->right;
    }
    struct tree_links *links = links_of(&view, member);
    uint32_t rest = *where;
    *where = member;
    split(&view, rest, member, &links->left, &links->right);
    sum_up(&view, member);
}

static uint32_t remove_at(const struct tree_view *view, uint32_t at, uint32_t member,
                          uint32_t value) {
    ACRE_ASSERT(at != TREE_NONE); /* it is in another tree, or its order changed */
    struct tree_links *links = links_of(view, at);
    if (at == member) {
        return merge(view, links->left, links->right);
    }
    if (view->kind->is_before(view->context, member, at)) {
        links->left = remove_at(view, links->left, member, value);
    } else {
        links->right = remove_at(view, links->right, member, value);
    }
    if (links->least == value && view->kind->value != NULL) {
        sum_up(view, at);
    } else {
        links->size--;
    }
    return at;
}

void tree_remove(const struct tree_kind *kind, void *context, struct tree *tree, uint32_t member) {
    struct tree_view view = {kind, context};
    tree->root = remove_at(&view, tree->root, member, value_of(&view, member));
}

static void refresh_at(const struct tree_view *view, uint32_t at, uint32_t member) {
    ACRE_ASSERT(at != TREE_NONE);
    const struct tree_links *links = links_of(view, at);
    if (at != member) {
        bool before = view->kind->is_before(view->context, member, at);
        refresh_at(view, before ? links->left : links->right, member);
    }
    sum_up(view, at);
}

void tree_refresh(const struct tree_kind *kind, void *context, struct tree *tree, uint32_t member) {
    struct tree_view view = {kind, context};
    refresh_at(&view, tree->root, member);
}

uint32_t tree_size(const struct tree_kind *kind, void *context, const struct tree *tree) {
    return tree->root == TREE_NONE ? 0 : kind->links(context, tree->root)->size;
}

uint32_t tree_first(const struct tree_kind *kind, void *context, const struct tree *tree) {
    uint32_t at = tree->root;
    while (at != TREE_NONE && kind->links(context, at)->left != TREE_NONE) {
        at = kind->links(context, at)->left;
    }
    return at;
}

uint32_t tree_rank(const struct tree_kind *kind, void *context, const struct tree *tree,
                   uint32_t member) {
    uint32_t rank = 0;
    uint32_t at = tree->root;
    while (at != TREE_NONE) {
        const struct tree_links *links = kind->links(context, at);
        uint32_t left = links->left == TREE_NONE ? 0 : kind->links(context, links->left)->size;
        if (at == member) {
            return rank + left;
        }
        if (kind->is_before(context, member, at)) {
            at = links->left;
        } else {
            rank += left + 1;
            at = links->right;
        }
    }
    ACRE_ASSERT(false); /* not a member */
    return rank;
}

uint32_t tree_at(const struct tree_kind *kind, void *context, const struct tree *tree,
                 uint32_t rank) {
    uint32_t at = tree->root;
    while (at != TREE_NONE) {
        const struct tree_links *links = kind->links(context, at);
        uint32_t left = links->left == TREE_NONE ? 0 : kind->links(context, links->left)->size;
        if (rank == left) {
            return at;
        }
        at = rank < left ? links->left : links->right;
        rank = rank < left ? rank : rank - left - 1;
    }
    return TREE_NONE;
}

uint32_t tree_least(const struct tree_kind *kind, void *context, const struct tree *tree) {
    return tree->root == TREE_NONE ? UINT32_MAX : kind->links(context, tree->root)->least;
}

uint32_t tree_first_within(const struct tree_kind *kind, void *context, const struct tree *tree,
                           uint32_t most) {
    uint32_t at = tree->root;
    while (at != TREE_NONE) {
        const struct tree_links *links = kind->links(context, at);
        if (links->least > most) {
            return TREE_NONE;
        }
        if (links->left != TREE_NONE && kind->links(context, links->left)->least <= most) {
            at = links->left;
        } else if ((kind->value != NULL ? kind->value(context, at) : 0) <= most) {
            return at;
        } else {
            at = links->right;
        }
    }
    return TREE_NONE;
}

static bool visit_at(const struct tree_view *view, uint32_t at,
                     bool (*visit)(void *visitor, uint32_t member), void *visitor) {
    if (at == TREE_NONE) {
        return true;
    }
    const struct tree_links *links = links_of(view, at);
    return visit_at(view, links->left, visit, visitor) && visit(visitor, at) &&
           visit_at(view, links->right, visit, visitor);
}

void tree_visit(const struct tree_kind *kind, void *context, const struct tree *tree,
                bool (*visit)(void *visitor, uint32_t member), void *visitor) {
    struct tree_view view = {kind, context};
    visit_at(&view, tree->root, visit, visitor);
}
