/** Interface of term_caps.c for term_out.c; only the former includes terminfo. */
#ifndef HV_UI_TERM_TERM_OUT_INT_H
#define HV_UI_TERM_TERM_OUT_INT_H

#include "ui/term/term_out.h"

/** Appends a capability; NULL is none. */
void hv__caps_add(struct hv_str *out, const char *capability);
/** The same with one parameter, or two. */
void hv__caps_add_1(struct hv_str *out, const char *capability, int a);
void hv__caps_add_2(struct hv_str *out, const char *capability, int a, int b);

#endif
