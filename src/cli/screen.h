/* screen.h - makes bytes that others wrote safe to show on a terminal.
 *
 * A terminal obeys escape sequences in what it shows: they can overwrite earlier lines, change the
 * title, or make the terminal type input. Text, colors and the controls that the caller names pass;
 * everything else is made visible ("\x1b[2J"). Pure; one thread at a time. */
#ifndef ACRE_CLI_SCREEN_H
#define ACRE_CLI_SCREEN_H

#include "core/buf.h"
#include "core/str.h"

enum { ACRE_SCREEN_HELD_MAX = 35 }; /* "\033[", 32 of parameters, 'm' */

struct screen {
    const char *controls; /* that pass, like "\n\t" */
    char held[ACRE_SCREEN_HELD_MAX];
    size_t held_length; /* the beginning of a character or a colour, whose rest may come */
    bool coloured;
};

void screen_init(struct screen *screen, const char *controls);
/* The next bytes, appended to `out` as they may be shown. They may be cut anywhere. */
void screen_put(struct screen *screen, struct acre_str bytes, struct acre_buf *out);
/* There are no more: what was held is shown, and colours end. */
void screen_end(struct screen *screen, struct acre_buf *out);

#endif
