/** Compiler attributes; the only place where compiler extensions are spelled out. */
#ifndef HV_SOLVER_BASE_ATTR_H
#define HV_SOLVER_BASE_ATTR_H

#if defined(__GNUC__)
/** Checks printf-style arguments: `fmt_at` = position of the format, `args_at` = first argument. */
#define HV_PRINTF(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))
/** The result must be used. */
#define HV_NODISCARD __attribute__((warn_unused_result))
/** The function never returns. */
#define HV_NORETURN __attribute__((noreturn))
/** The parameter or function may stay unused. */
#define HV_UNUSED __attribute__((unused))
#else
#define HV_PRINTF(fmt_at, args_at)
#define HV_NODISCARD
#define HV_NORETURN
#define HV_UNUSED
#endif

/** 1 in a build with the address sanitizer. */
#if defined(__SANITIZE_ADDRESS__)
#define HV_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HV_ASAN 1
#endif
#endif
#ifndef HV_ASAN
#define HV_ASAN 0
#endif

/** Number of elements of a true array. */
#define HV_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
