/* node_order.h - the first node, in order, that can serve a want (first fit, round robin).
 *
 * Private to src/ledger; core thread only. Built when first asked for. */
#ifndef ACRE_LEDGER_NODE_ORDER_H
#define ACRE_LEDGER_NODE_ORDER_H

#include "ledger/class.h"

void node_order_destroy(struct node_order *order); /* NULL is fine */

/* The node's state changed (or it is new). Does nothing until the order is in use. */
void node_order_changed(struct acre_ledger *ledger, uint32_t node);

/* The first node at or after `from` that serves the class's want, else the first before it;
 * UINT32_MAX when there is none. */
uint32_t node_order_find(struct acre_ledger *ledger, struct want_class *class, uint32_t from);
size_t node_order_bytes(const struct node_order *order);

#endif
