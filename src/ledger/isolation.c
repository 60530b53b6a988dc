/* isolation.c - the names of the isolations, printed from their table. */
#include "ledger/isolation.h"

static const char *const names[ACRE_ISOLATION_COUNT] = {
#define X(name, text) [ACRE_ISOLATION_##name] = text,
    ACRE_ISOLATIONS(X)
#undef X
};

const char *isolation_name(enum acre_isolation isolation) {
    ACRE_ASSERT((unsigned)isolation < ACRE_ISOLATION_COUNT);
    return names[isolation];
}

bool isolation_parse(struct acre_str text, enum acre_isolation *ret_isolation) {
    for (unsigned i = 0; i < ACRE_ISOLATION_COUNT; i++) {
        if (acre_str_is(text, names[i])) {
            *ret_isolation = (enum acre_isolation)i;
            return true;
        }
    }
    return false;
}
