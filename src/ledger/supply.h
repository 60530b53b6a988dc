/* supply.h - what the cluster has of what a request needs, in numbers: now, and by kind of node.
 *
 * For code that explains a wait or plans ahead; it places nothing. Core thread only; asking changes
 * nothing but caches. Costs what the ledger has of different states of nodes, and a glance at each
 * node. */
#ifndef ACRE_LEDGER_SUPPLY_H
#define ACRE_LEDGER_SUPPLY_H

#include "ledger/ledger.h"

/* Drained nodes and devices take nothing and are not counted, except in `devices`. */
struct acre_supply {
    uint32_t devices;       /* that could serve it, were all idle and none drained */
    uint32_t asked_milli;   /* of each device; the most, when that depends on the device */
    uint64_t free_milli;    /* of all devices that could serve it, in total */
    uint32_t largest_milli; /* free on one of them */
    const char *largest_at; /* on which node; "" when nothing is free */
    uint32_t fitting;       /* devices that would take its share now */
    uint32_t most_fitting;  /* of these, the most on one node */
    const char *most_at;    /* "" when there is none */
    bool only_is_drained;   /* there is one such device, and it is drained */
    uint64_t members;       /* replicas that would find all they need, node by node */
};
/* ACRE_EINVALID, ACRE_EDENIED as acre_ledger_plan. */
int acre_ledger_supply(struct acre_ledger *ledger, const struct acre_request *request,
                       struct acre_supply *ret_supply, struct acre_error *err);

/* Nodes of one kind have the same hardware and labels. Kinds count from 0 and stay. A node's
 * devices stand at slots 0 ... device_count - 1; slots of equal hardware may change places. */
uint32_t acre_ledger_kind_count(const struct acre_ledger *ledger);
uint32_t acre_ledger_kind_of(const struct acre_ledger *ledger, uint32_t node);
uint32_t acre_ledger_slot_of(const struct acre_ledger *ledger, uint32_t device);

/* Which slots of this kind could serve the request when idle (a bit each), and what it takes of
 * each in milli (the most). False: none, or it is no valid request. */
bool acre_ledger_kind_serves(struct acre_ledger *ledger, const struct acre_request *request,
                             uint32_t kind, uint64_t *ret_slots, uint32_t *ret_milli);

#endif
