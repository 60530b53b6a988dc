/* strategy.c - the names of the strategies. */
#include "ledger/request.h"

#include "core/str.h"

#include <string.h>

static const char *const names[] = {[ACRE_STRATEGY_DEFAULT] = "default",
#define X(name, text, meaning) [ACRE_STRATEGY_##name] = text,
                                    ACRE_STRATEGIES(X)
#undef X
};

const char *acre_strategy_name(enum acre_strategy strategy) {
    return names[strategy];
}

int acre_strategy_parse(const char *field, const char *text, enum acre_strategy *ret_strategy,
                        struct acre_error *err) {
    for (unsigned i = 0; i < ACRE_COUNT(names); i++) {
        if (strcmp(names[i], text) == 0) {
            *ret_strategy = (enum acre_strategy)i;
            return 0;
        }
    }
    char shown[80];
    return acre_fail(err, ACRE_EINVALID,
                     "%s: '%s' is not a strategy; accepted: default, least-fragmentation, "
                     "first-fit, best-fit, worst-fit, round-robin, load-balanced",
                     field, acre_str_show(acre_str_from(text), shown, sizeof(shown)));
}
