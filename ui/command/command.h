/** Commands: their table, parsing of their arguments, the texts made from the table. */
#ifndef HV_UI_COMMAND_COMMAND_H
#define HV_UI_COMMAND_COMMAND_H

#include "ui/command/args.h"
#include "ui/command/help.h"
#include "ui/command/table.h"

#endif
