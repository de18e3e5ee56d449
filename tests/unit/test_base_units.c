/* Numbers for people and for files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/attr.h"
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
