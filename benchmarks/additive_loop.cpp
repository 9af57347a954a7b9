// Additive scores and their gradients as the cpu kernel computes them, by hand: AVX-512 and OpenMP.
//
// exp(2 q) and exp(2 k) once for each row, tanh(q + k) = 1 - 2 / (1 + a b) for each pair, two keys
// for a division. benchmarks/additive.py compiles and times it. Sizes are whole tiles and vectors.
#include <immintrin.h>
#include <omp.h>
#include <cstdlib>
#include <cstring>
#include <vector>

static const int QUERIES = 64, KEYS = 16, LANES = 16;

static inline __m512 exp2x(__m512 x) {  // exp(2 x)
  const __m512 y = _mm512_mul_ps(x, _mm512_set1_ps(2.0f));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(y, _mm512_set1_ps(1.44269504f)), 0);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), y);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.0f / 5040);
  for (float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c));
  return _mm512_scalef_ps(p, n);
}

static void load(const float* from, float* to, long count) {
  for (long d = 0; d < count; d += LANES)
    _mm512_storeu_ps(to + d, exp2x(_mm512_loadu_ps(from + d)));
}

static inline __m512 at(const float* p) { return _mm512_loadu_ps(p); }

extern "C" void scores(const float* q, const float* k, const float* w, float* out, const long* n) {
  const long B = n[0], Q = n[1], K = n[2], D = n[3], tiles = Q / QUERIES;
  float total = 0;
  for (long d = 0; d < D; d++) total += w[d];
  const __m512 one = _mm512_set1_ps(1.0f);
#pragma omp parallel for schedule(static) num_threads((int)n[4])
  for (long t = 0; t < B * tiles; t++) {
    const long b = t / tiles, i0 = t % tiles * QUERIES;
    std::vector<float> a(QUERIES * D), c(KEYS * D);
    load(q + (b * Q + i0) * D, a.data(), QUERIES * D);
    for (long j0 = 0; j0 < K; j0 += KEYS) {
      load(k + (b * K + j0) * D, c.data(), KEYS * D);
      for (long i = 0; i < QUERIES; i++) {
        const float* x = a.data() + i * D;
        float* row = out + (b * Q + i0 + i) * K + j0;
        for (long j = 0; j < KEYS; j += 2) {
          const float *y = c.data() + j * D, *z = y + D;
          __m512 s = _mm512_setzero_ps(), r = s;
          for (long d = 0; d < D; d += LANES) {
            const __m512 u = _mm512_fmadd_ps(at(x + d), at(y + d), one);
            const __m512 v = _mm512_fmadd_ps(at(x + d), at(z + d), one);
            const __m512 share = _mm512_div_ps(at(w + d), _mm512_mul_ps(u, v));
            s = _mm512_fmadd_ps(v, share, s);
            r = _mm512_fmadd_ps(u, share, r);
          }
          row[j] = total - 2 * _mm512_reduce_add_ps(s);
          row[j + 1] = total - 2 * _mm512_reduce_add_ps(r);
        }
      }
    }
  }
}

static inline void add(float* p, __m512 x) { _mm512_storeu_ps(p, _mm512_add_ps(at(p), x)); }

// Sentences are shared out among threads: use it where the batch is a multiple of their number.
extern "C" void gradients(const float* q, const float* k, const float* w, const float* given,
                          float* dq, float* dk, float* dw, const long* n) {
  const long B = n[0], Q = n[1], K = n[2], D = n[3], tiles = Q / QUERIES;
  const __m512 one = _mm512_set1_ps(1.0f);
  std::memset(dw, 0, D * sizeof(float));
#pragma omp parallel num_threads((int)n[4])
  {
    std::vector<float> a(QUERIES * D), c(KEYS * D), sq(QUERIES * D), sk(KEYS * D), sw(D), own(D);
#pragma omp for schedule(static)
    for (long b = 0; b < B; b++) {
      float* keys = dk + b * K * D;
      std::memset(keys, 0, K * D * sizeof(float));
      for (long t = 0; t < tiles; t++) {
        const long i0 = t * QUERIES;
        load(q + (b * Q + i0) * D, a.data(), QUERIES * D);
        std::fill(sq.begin(), sq.end(), 0.0f);
        for (long j0 = 0; j0 < K; j0 += KEYS) {
          load(k + (b * K + j0) * D, c.data(), KEYS * D);
          std::fill(sk.begin(), sk.end(), 0.0f);
          std::fill(sw.begin(), sw.end(), 0.0f);
          double total = 0;
          for (long i = 0; i < QUERIES; i++) {
            const float *x = a.data() + i * D, *g = given + (b * Q + i0 + i) * K + j0;
            for (long j = 0; j < KEYS; j += 2) {
              const float *y = c.data() + j * D, *z = y + D;
              const __m512 s0 = _mm512_set1_ps(g[j]), s1 = _mm512_set1_ps(g[j + 1]);
              total += g[j] + g[j + 1];
              float *to = sq.data() + i * D, *k0 = sk.data() + j * D, *k1 = k0 + D;
              for (long d = 0; d < D; d += LANES) {
                const __m512 xx = at(x + d), yy = at(y + d), zz = at(z + d);
                const __m512 u = _mm512_fmadd_ps(xx, yy, one), v = _mm512_fmadd_ps(xx, zz, one);
                const __m512 share = _mm512_div_ps(one, _mm512_mul_ps(u, v));
                const __m512 r0 = _mm512_mul_ps(v, share), r1 = _mm512_mul_ps(u, share);
                __m512 h0 = _mm512_mul_ps(s0, r0), h1 = _mm512_mul_ps(s1, r1);
                add(sw.data() + d, _mm512_add_ps(h0, h1));
                h0 = _mm512_mul_ps(h0, r0), h1 = _mm512_mul_ps(h1, r1);
                add(to + d, _mm512_fmadd_ps(h0, yy, _mm512_mul_ps(h1, zz)));
                _mm512_storeu_ps(k0 + d, _mm512_fmadd_ps(h0, xx, at(k0 + d)));
                _mm512_storeu_ps(k1 + d, _mm512_fmadd_ps(h1, xx, at(k1 + d)));
              }
            }
          }
          for (long d = 0; d < D; d++) own[d] += (float)(total - 2 * sw[d]);
          for (long j = 0; j < KEYS; j++)
            for (long d = 0; d < D; d++)
              keys[(j0 + j) * D + d] += 4 * w[d] * c[j * D + d] * sk[j * D + d];
        }
        for (long i = 0; i < QUERIES; i++)
          for (long d = 0; d < D; d++)
            dq[(b * Q + i0 + i) * D + d] = 4 * w[d] * a[i * D + d] * sq[i * D + d];
      }
    }
#pragma omp critical
    for (long d = 0; d < D; d++) dw[d] += own[d];
  }
}
