/** Seeded pseudo-random numbers (xoshiro256**, seeded by splitmix64; Blackman and Vigna, public
 * domain). */
#ifndef HV_SOLVER_BASE_RNG_H
#define HV_SOLVER_BASE_RNG_H

#include <stdint.h>

/** Generator state; same seed, same numbers on every machine. */
struct hv_rng {
    uint64_t s[4];
};

/** Starts the generator. */
void hv_rng_seed(struct hv_rng *r, uint64_t seed);
/** 64 random bits. */
uint64_t hv_rng_u64(struct hv_rng *r);
/** Uniform in [0, 1), 53 bits. */
double hv_rng_double(struct hv_rng *r);
/** Uniform in [0, n), unbiased; n > 0. */
uint64_t hv_rng_below(struct hv_rng *r, uint64_t n);

/** FNV-1a hash of n bytes that continues the hash `h` (HV_HASH_START for a new one). */
uint64_t hv_hash(uint64_t h, const void *bytes, uint64_t n);
/** As hv_hash, by words of 8 bytes, of which the last may be cut: another number than hv_hash, for
 * keys that stay in memory, and several times faster. */
uint64_t hv_hash_words(uint64_t h, const void *bytes, uint64_t n);
#define HV_HASH_START 0xcbf29ce484222325ULL

#endif
