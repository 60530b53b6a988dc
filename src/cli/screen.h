/* screen.h - bytes that others wrote, on their way to a terminal.
 *
 * A terminal takes commands from what it is shown: to move the cursor over what was said before, to
 * change its title, to type an answer by itself. Here text, colours and the controls that the
 * caller names pass; everything else is made visible ("\x1b[2J"). Pure; one thread at a time. */
#ifndef ACRE_CLI_SCREEN_H
#define ACRE_CLI_SCREEN_H

#include "core/buf.h"
#include "core/str.h"

enum { ACRE_SCREEN_HELD_MAX = 35 }; /* "\033[", 32 of parameters, 'm' */

struct acre_screen {
    const char *controls; /* that pass, like "\n\t" */
    char held[ACRE_SCREEN_HELD_MAX];
    size_t held_length; /* the beginning of a character or a colour, whose rest may come */
    bool coloured;
};

void acre_screen_init(struct acre_screen *screen, const char *controls);
/* The next bytes, appended to `out` as they may be shown. They may be cut anywhere. */
void acre_screen_put(struct acre_screen *screen, struct acre_str bytes, struct acre_buf *out);
/* There are no more: what was held is shown, and colours end. */
void acre_screen_end(struct acre_screen *screen, struct acre_buf *out);

#endif
