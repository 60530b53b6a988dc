/* ledger_oracle_worth.c - the one formula the oracle asks of the real ledger.
 *
 * What a room is worth to the recent requests is a matter of taste and of floating point, and not
 * of agreement: the oracle checks that the ledger's choice is the best by that worth, whatever the
 * worth is. Everything that knows the formula or the private headers is in this file. */
#include "ledger/mix.h"
#include "support/ledger_oracle_room.h"

double oracle_worth(const struct oracle *oracle, const struct oracle_room *room) {
    const struct acre_ledger *ledger = oracle->ledger;
    uint32_t profile = ledger->nodes[room->node].profile;
    struct room real = {
        .profile = ledger->profiles[profile],
        .profile_index = profile,
        .cpu_free_milli = room->cpu_free_milli,
        .ram_free_mib = room->ram_free_mib,
    };
    for (uint32_t i = 0; i < room->count; i++) {
        const struct oracle_state *state = &room->slots[i].state;
        real.words[i] =
            word_make(state->milli, state->room, state->kind, state->mib, state->shares);
    }
    return mix_worth(ledger->mix, &real);
}
