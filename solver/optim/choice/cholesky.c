/* Cholesky factors: the inner products of rows that are done already. */
#include "solver/optim/choice/cholesky.h"

#include <math.h>

bool hv_cholesky(double *a, size_t n)
{
    for (size_t p = 0; p < n; p++) {
        for (size_t q = 0; q <= p; q++) {
            double s = a[p * n + q];
            for (size_t k = 0; k < q; k++) {
                s -= a[p * n + k] * a[q * n + k];
            }
            if (p == q && !(s > 0)) {
                return false;
            }
            a[p * n + q] = p == q ? sqrt(s) : s / a[q * n + q];
        }
    }
    return true;
}

void hv_cholesky_forward(const double *l, size_t n, double *x)
{
    for (size_t p = 0; p < n; p++) {
        for (size_t k = 0; k < p; k++) {
            x[p] -= l[p * n + k] * x[k];
        }
        x[p] /= l[p * n + p];
    }
}

void hv_cholesky_back(const double *l, size_t n, double *x)
{
    for (size_t p = n; p-- > 0;) {
        for (size_t k = p + 1; k < n; k++) {
            x[p] -= l[k * n + p] * x[k];
        }
        x[p] /= l[p * n + p];
    }
}
