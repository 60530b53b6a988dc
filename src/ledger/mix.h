/* mix.h - what has been asked for lately, and what a node's free room is worth to such requests.
 *
 * The worth of a node is the GPU it could still serve, in milli, averaged over the recent mix of
 * requests (docs/design/002-least-fragmentation.md). A placement that lowers the worth by no
 * more than what it takes wastes nothing. The mix is learned from requests as they arrive and
 * frozen between refreshes, so that judgements may be kept. Private to src/ledger; pure. */
#ifndef ACRE_LEDGER_MIX_H
#define ACRE_LEDGER_MIX_H

#include "ledger/choose.h"

struct mix *mix_create(void);
void mix_destroy(struct mix *mix);

/* A request of this want arrived (whether it was placed or not). */
void mix_note(struct acre_ledger *ledger, const struct want *want);

/* Grows when the frozen mix changed: judgements by worth must start afresh. */
uint32_t mix_epoch(const struct mix *mix);

double mix_worth(const struct mix *mix, const struct room *room);

/* The same in steps, for one room that is tried with less CPU and RAM, or with one device after
 * the other in another state. */
enum { MIX_CLASSES_MAX = 64 }; /* a bit each in one word; more change nothing measurable */
struct mix_view {
    float most[MIX_CLASSES_MAX];      /* members that CPU and RAM allow */
    uint16_t counts[MIX_CLASSES_MAX]; /* members that the devices take */
};
void mix_look_at_devices(const struct mix *mix, const struct room *room, struct mix_view *view);
void mix_look_at_host(const struct mix *mix, const struct room *room, struct mix_view *view);
double mix_worth_as_seen(const struct mix *mix, const struct room *room,
                         const struct mix_view *view);
double mix_worth_after(const struct mix *mix, const struct room *room, const struct mix_view *view,
                       uint32_t slot, uint64_t word);
size_t mix_bytes(const struct mix *mix);

#endif
