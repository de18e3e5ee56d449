/*
 * xoshiro256** seeded by splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", ACM TOMS 47(4), 2021), and FNV-1a. Not cryptographically secure.
 */
#include "solver/base/rng.h"

#include <string.h>

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void hv_rng_seed(struct hv_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9E3779B97F4A7C15ULL;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        r->s[i] = z ^ (z >> 31);
    }
}

uint64_t hv_rng_u64(struct hv_rng *r)
{
    uint64_t *s = r->s;
    uint64_t out = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return out;
}

double hv_rng_double(struct hv_rng *r)
{
    return (double)(hv_rng_u64(r) >> 11) * 0x1p-53;
}

uint64_t hv_rng_below(struct hv_rng *r, uint64_t n)
{
    /* the lowest 2^64 mod n values are rejected, so that every remainder is equally likely */
    uint64_t refuse = (0 - n) % n, x;
    do {
        x = hv_rng_u64(r);
    } while (x < refuse);
    return x % n;
}

uint64_t hv_hash(uint64_t h, const void *bytes, uint64_t n)
{
    const unsigned char *p = bytes;
    for (uint64_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001B3ULL;
    }
    return h;
}

/* Multiply and fold; the constant is one of splitmix64. */
static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xBF58476D1CE4E5B9ULL;
    return h ^ (h >> 29);
}

uint64_t hv_hash_words(uint64_t h, const void *bytes, uint64_t n)
{
    const unsigned char *p = bytes;
    uint64_t i = 0, word;
    for (; i + sizeof word <= n; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        h = mix(h, word);
    }
    word = 0;
    memcpy(&word, p + i, n - i);
    return n > i ? mix(h, word) : h;
}
