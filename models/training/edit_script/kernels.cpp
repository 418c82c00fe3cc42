// Training kernels for CPUs with AMX: bf16 matrix products with float32 sums, and everything
// between them, fused. Called through ctypes by native.py; plain pointers, no dependency but OpenMP.
//
// Matrices are row-major. The matrix unit multiplies tiles of 16 rows by 64 bytes; its second
// operand wants pairs of consecutive k side by side. Three ways of packing make such tiles:
//   pack_t:  second operand for  A * X^T   (tiles [row of X / 16][column / 32])
//   pack_i:  second operand for  A * X     (tiles [column of X / 16][row / 32])
//   pack_it: first operand for   X^T * B   (tiles [column of X / 16][row / 32])
// All row counts are multiples of 32, all tile loops work on 32 x 32 results.
#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef uint16_t bf;
typedef int64_t i64;
#define TILE 512  // elements of a tile

struct alignas(64) TileConfig {
  uint8_t palette, start, reserved[14];
  uint16_t columns[16];
  uint8_t rows[16];
};

static void configure_tiles() {
  TileConfig c;
  memset(&c, 0, sizeof c);
  c.palette = 1;
  for (int i = 0; i < 8; i++) c.columns[i] = 64, c.rows[i] = 16;
  _tile_loadconfig(&c);
}

static inline __m512 load_bf(const bf *p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
static inline void store_bf(bf *p, __m512 v) { _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(v)); }
static inline float as_float(bf x) {
  uint32_t u = (uint32_t)x << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static inline __m512 exp16(__m512 x) {
  x = _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(88.f)), _mm512_set1_ps(-100.f));
  __m512 z = _mm512_mul_ps(x, _mm512_set1_ps(1.44269504f));
  __m512 n = _mm512_roundscale_ps(z, 8);
  __m512 f = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  f = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), f);
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.0000001201e-1f));
  p = _mm512_fmadd_ps(_mm512_mul_ps(p, f), f, _mm512_add_ps(f, _mm512_set1_ps(1.f)));
  return _mm512_scalef_ps(p, n);
}

static inline void transpose16(__m512i *r) {
  __m512i t[16];
  for (int i = 0; i < 8; i++) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; i++) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int j = 0; j < 4; j++) {
    __m512i a = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88), b = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
    __m512i c = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd), d = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
    t[j] = _mm512_shuffle_i32x4(a, b, 0x88);
    t[8 + j] = _mm512_shuffle_i32x4(a, b, 0xdd);
    t[4 + j] = _mm512_shuffle_i32x4(c, d, 0x88);
    t[12 + j] = _mm512_shuffle_i32x4(c, d, 0xdd);
  }
  memcpy(r, t, sizeof t);
}

static inline __m512i row_pair(const bf *x, i64 ld) {
  __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)x));
  __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(x + ld)));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}
static inline void tile_t(const bf *x, i64 ld, bf *out) {
  __m512i r[16];
  for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(x + i * ld);
  transpose16(r);
  for (int i = 0; i < 16; i++) _mm512_storeu_si512(out + i * 32, r[i]);
}
static inline void tile_i(const bf *x, i64 ld, bf *out) {
  for (int i = 0; i < 16; i++) _mm512_storeu_si512(out + i * 32, row_pair(x + 2 * i * ld, ld));
}
static inline void tile_it(const bf *x, i64 ld, bf *out) {
  __m512i r[16];
  for (int i = 0; i < 16; i++) r[i] = row_pair(x + 2 * i * ld, ld);
  transpose16(r);
  for (int i = 0; i < 16; i++) _mm512_storeu_si512(out + i * 32, r[i]);
}

// c (32 x 32) = [c +] a * b over `depth` tiles of k.
static inline void product(const char *a0, const char *a1, i64 a_stride, i64 a_step, const char *b0, const char *b1,
                           int depth, float *c, i64 ldc, bool add) {
  i64 s = ldc * 4;
  float *d = c + 16 * ldc;
  if (add) {
    _tile_loadd(0, c, s); _tile_loadd(1, c + 16, s); _tile_loadd(2, d, s); _tile_loadd(3, d + 16, s);
  } else {
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
  }
  for (int k = 0; k < depth; k++) {
    _tile_loadd(6, b0, 64);
    _tile_loadd(4, a0, a_stride);
    _tile_loadd(7, b1, 64);
    _tile_loadd(5, a1, a_stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    a0 += a_step; a1 += a_step; b0 += 2 * TILE; b1 += 2 * TILE;
  }
  _tile_stored(0, c, s); _tile_stored(1, c + 16, s); _tile_stored(2, d, s); _tile_stored(3, d + 16, s);
}

extern "C" {

int setup(int threads) {
  omp_set_num_threads(threads);
  return (int)syscall(SYS_arch_prctl, 0x1023, 18);  // may this process use tiles?
}

void pack_t(const bf *x, i64 rows, i64 columns, bf *out) {
  i64 kt = columns / 32;
#pragma omp parallel for schedule(dynamic, 4)
  for (i64 n = 0; n < rows / 16; n++)
    for (i64 k = 0; k < kt; k++) tile_t(x + n * 16 * columns + k * 32, columns, out + (n * kt + k) * TILE);
}
void pack_i(const bf *x, i64 rows, i64 columns, bf *out) {
  i64 kt = rows / 32;
#pragma omp parallel for schedule(dynamic, 4)
  for (i64 n = 0; n < columns / 16; n++)
    for (i64 k = 0; k < kt; k++) tile_i(x + k * 32 * columns + n * 16, columns, out + (n * kt + k) * TILE);
}
void pack_it(const bf *x, i64 rows, i64 columns, bf *out) {
  i64 kt = rows / 32;
#pragma omp parallel for schedule(dynamic, 4)
  for (i64 n = 0; n < columns / 16; n++)
    for (i64 k = 0; k < kt; k++) tile_it(x + k * 32 * columns + n * 16, columns, out + (n * kt + k) * TILE);
}

// y = a * packed; exactly one of y16 (stored as bf16) and y32 is given; `add` adds to y32.
// The rows of `a` are copied into tiles first: loading tiles row by row from far apart is four times as slow.
// y16 needs k <= 1536.
void multiply(const bf *a, const bf *packed, i64 m, i64 n, i64 k, bf *y16, float *y32, int add) {
  i64 kt = k / 32;
  i64 chunk = kt > 48 ? 48 : kt;
  i64 mb = 256;
  i64 nb = n > 4096 ? 1024 : (n > 1024 ? n / 4 : n);
  i64 nm = (m + mb - 1) / mb, nn = (n + nb - 1) / nb;
#pragma omp parallel
  {
    configure_tiles();
    alignas(64) float block[1024];
    bf *tiles = (bf *)aligned_alloc(4096, mb * chunk * 64);
#pragma omp for schedule(dynamic) collapse(2)
    for (i64 im = 0; im < nm; im++)
      for (i64 in = 0; in < nn; in++) {
        i64 m0 = im * mb, m1 = (im + 1) * mb < m ? (im + 1) * mb : m, n1 = (in + 1) * nb < n ? (in + 1) * nb : n;
        for (i64 k0 = 0; k0 < kt; k0 += chunk) {
          int depth = (int)(kt - k0 < chunk ? kt - k0 : chunk);
          for (i64 i = m0; i < m1; i += 16)
            for (int r = 0; r < 16; r++) {
              const bf *from = a + (i + r) * k + k0 * 32;
              bf *to = tiles + (i - m0) / 16 * depth * TILE + r * 32;
              for (int d = 0; d < depth; d++) _mm512_store_si512(to + d * TILE, _mm512_loadu_si512(from + d * 32));
            }
          for (i64 j = in * nb; j < n1; j += 32) {
            const char *b0 = (const char *)(packed + ((j / 16) * kt + k0) * TILE);
            const char *b1 = b0 + kt * TILE * 2;
            for (i64 i = m0; i < m1; i += 32) {
              const char *a0 = (const char *)(tiles + (i - m0) / 16 * depth * TILE);
              const char *a1 = a0 + depth * TILE * 2;
              if (y32) {
                product(a0, a1, 64, TILE * 2, b0, b1, depth, y32 + i * n + j, n, add || k0 > 0);
              } else {
                product(a0, a1, 64, TILE * 2, b0, b1, depth, block, 32, false);
                for (int r = 0; r < 32; r++) {
                  store_bf(y16 + (i + r) * n + j, _mm512_load_ps(block + r * 32));
                  store_bf(y16 + (i + r) * n + j + 16, _mm512_load_ps(block + r * 32 + 16));
                }
              }
            }
          }
        }
      }
    free(tiles);
    _tile_release();
  }
}

// w (n x c, float32) = g^T * x, from pack_it(g) and pack_i(x) of `tokens` rows.
void weight_gradient(const bf *g, const bf *x, i64 tokens, i64 n, i64 c, float *w) {
  i64 kt = tokens / 32, chunk = 32;
  i64 nb = n > 8192 ? 256 : 64;
  i64 cb = 576 <= c ? (c % 576 == 0 ? 576 : 512) : c;
  i64 nn = (n + nb - 1) / nb, nc = (c + cb - 1) / cb;
#pragma omp parallel
  {
    configure_tiles();
#pragma omp for schedule(dynamic) collapse(2)
    for (i64 in = 0; in < nn; in++)
      for (i64 ic = 0; ic < nc; ic++) {
        i64 n1 = (in + 1) * nb < n ? (in + 1) * nb : n, c1 = (ic + 1) * cb < c ? (ic + 1) * cb : c;
        for (i64 k0 = 0; k0 < kt; k0 += chunk) {
          int depth = (int)(kt - k0 < chunk ? kt - k0 : chunk);
          for (i64 j = ic * cb; j < c1; j += 32) {
            const char *b0 = (const char *)(x + ((j / 16) * kt + k0) * TILE);
            for (i64 i = in * nb; i < n1; i += 32) {
              const char *a0 = (const char *)(g + ((i / 16) * kt + k0) * TILE);
              product(a0, a0 + kt * TILE * 2, 64, TILE * 2, b0, b0 + kt * TILE * 2, depth, w + i * c + j, c, k0 > 0);
            }
          }
        }
      }
    _tile_release();
  }
}

// h = x / rms(x) * w; inverse keeps 1 / rms.
void norm_forward(const float *x, const float *w, i64 m, i64 d, bf *h, float *inverse) {
#pragma omp parallel for schedule(dynamic, 64)
  for (i64 t = 0; t < m; t++) {
    const float *r = x + t * d;
    __m512 s = _mm512_setzero_ps();
    for (i64 j = 0; j < d; j += 16) { __m512 v = _mm512_loadu_ps(r + j); s = _mm512_fmadd_ps(v, v, s); }
    float q = 1.f / sqrtf(_mm512_reduce_add_ps(s) / d + 1e-5f);
    inverse[t] = q;
    __m512 z = _mm512_set1_ps(q);
    for (i64 j = 0; j < d; j += 16)
      store_bf(h + t * d + j, _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(r + j), z), _mm512_loadu_ps(w + j)));
  }
}

// dx += gradient through the norm; dx16 is its bf16 copy; dw += (caller zeroes it).
void norm_backward(const float *dh, const float *x, const float *w, const float *inverse, i64 m, i64 d, float *dx,
                   bf *dx16, float *dw) {
#pragma omp parallel
  {
    alignas(64) float own[2048];
    memset(own, 0, sizeof own);
#pragma omp for schedule(dynamic, 64)
    for (i64 t = 0; t < m; t++) {
      __m512 z = _mm512_set1_ps(inverse[t]), s = _mm512_setzero_ps();
      const float *r = x + t * d, *g = dh + t * d;
      for (i64 j = 0; j < d; j += 16) {
        __m512 gx = _mm512_mul_ps(_mm512_loadu_ps(g + j), _mm512_mul_ps(_mm512_loadu_ps(r + j), z));
        _mm512_store_ps(own + j, _mm512_add_ps(_mm512_load_ps(own + j), gx));
        s = _mm512_fmadd_ps(gx, _mm512_loadu_ps(w + j), s);
      }
      __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(s) / d);
      for (i64 j = 0; j < d; j += 16) {
        __m512 hat = _mm512_mul_ps(_mm512_loadu_ps(r + j), z);
        __m512 v = _mm512_fmsub_ps(_mm512_loadu_ps(g + j), _mm512_loadu_ps(w + j), _mm512_mul_ps(hat, mean));
        v = _mm512_fmadd_ps(v, z, _mm512_loadu_ps(dx + t * d + j));
        _mm512_storeu_ps(dx + t * d + j, v);
        store_bf(dx16 + t * d + j, v);
      }
    }
#pragma omp critical
    for (i64 j = 0; j < d; j++) dw[j] += own[j];
  }
}

// Rotate heads [0, rotated) of each row in place; the first `queries` are scaled by 1/8 as well.
// direction 1 forward, -1 backward (which is the transpose, scale included).
void rope(bf *x, const int *position, i64 m, i64 row, int queries, int rotated, const float *cosine, const float *sine,
          int direction) {
#pragma omp parallel for schedule(dynamic, 64)
  for (i64 t = 0; t < m; t++) {
    const float *c = cosine + position[t] * 32, *s = sine + position[t] * 32;
    for (int h = 0; h < rotated; h++) {
      bf *p = x + t * row + h * 64;
      __m512 scale = _mm512_set1_ps(h < queries ? 0.125f : 1.f);
      for (int j = 0; j < 32; j += 16) {
        __m512 a = load_bf(p + j), b = load_bf(p + 32 + j);
        __m512 cc = _mm512_mul_ps(_mm512_loadu_ps(c + j), scale);
        __m512 ss = _mm512_mul_ps(_mm512_loadu_ps(s + j), _mm512_mul_ps(scale, _mm512_set1_ps((float)direction)));
        store_bf(p + j, _mm512_fmsub_ps(a, cc, _mm512_mul_ps(b, ss)));
        store_bf(p + 32 + j, _mm512_fmadd_ps(b, cc, _mm512_mul_ps(a, ss)));
      }
    }
  }
}

void swiglu_forward(const bf *gu, i64 m, i64 d, bf *y) {
#pragma omp parallel for schedule(dynamic, 32)
  for (i64 t = 0; t < m; t++)
    for (i64 j = 0; j < d; j += 16) {
      __m512 g = load_bf(gu + t * 2 * d + j), u = load_bf(gu + t * 2 * d + d + j), one = _mm512_set1_ps(1.f);
      __m512 s = _mm512_div_ps(one, _mm512_add_ps(one, exp16(_mm512_sub_ps(_mm512_setzero_ps(), g))));
      store_bf(y + t * d + j, _mm512_mul_ps(_mm512_mul_ps(g, s), u));
    }
}
void swiglu_backward(const bf *gu, const bf *dy, i64 m, i64 d, bf *dgu) {
#pragma omp parallel for schedule(dynamic, 32)
  for (i64 t = 0; t < m; t++)
    for (i64 j = 0; j < d; j += 16) {
      __m512 g = load_bf(gu + t * 2 * d + j), u = load_bf(gu + t * 2 * d + d + j), one = _mm512_set1_ps(1.f);
      __m512 e = load_bf(dy + t * d + j);
      __m512 s = _mm512_div_ps(one, _mm512_add_ps(one, exp16(_mm512_sub_ps(_mm512_setzero_ps(), g))));
      __m512 inner = _mm512_fmadd_ps(g, _mm512_sub_ps(one, s), one);
      store_bf(dgu + t * 2 * d + j, _mm512_mul_ps(_mm512_mul_ps(e, u), _mm512_mul_ps(s, inner)));
      store_bf(dgu + t * 2 * d + d + j, _mm512_mul_ps(e, _mm512_mul_ps(g, s)));
    }
}

// A token sees the first region[t] tokens of its group and from own[t] (counted in the group) to itself.
// Scores of one block of 32 queries against `columns` keys become chances in p (bf16, row stride ldp).
static inline void softmax_rows(const float *scores, i64 ld, i64 first, i64 rows, i64 columns, const int *region,
                                const int *own, float *lse, bf *p, i64 ldp) {
  for (i64 r = 0; r < 32; r++) {
    bf *out = p + r * ldp;
    if (r >= rows) { memset(out, 0, columns * 2); continue; }
    i64 t = first + r;
    const float *s = scores + r * ld;
    i64 re = region[t] < t + 1 ? region[t] : t + 1;
    i64 from = own[t];
    __m512 best = _mm512_set1_ps(-1e30f), none = _mm512_set1_ps(-1e30f);
    __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i vre = _mm512_set1_epi32((int)re), vfrom = _mm512_set1_epi32((int)from), vt = _mm512_set1_epi32((int)t);
#define VISIBLE(j, mask) \
  __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32((int)(j))); \
  __mmask16 mask = _mm512_cmplt_epi32_mask(at, vre) | (_mm512_cmpge_epi32_mask(at, vfrom) & _mm512_cmple_epi32_mask(at, vt));
    for (i64 j = 0; j < columns; j += 16) {
      VISIBLE(j, mask)
      best = _mm512_max_ps(best, _mm512_mask_loadu_ps(none, mask, s + j));
    }
    float top = _mm512_reduce_max_ps(best);
    __m512 vtop = _mm512_set1_ps(top), sum = _mm512_setzero_ps();
    float *w = (float *)s;
    for (i64 j = 0; j < columns; j += 16) {
      VISIBLE(j, mask)
      __m512 e = _mm512_maskz_mov_ps(mask, exp16(_mm512_sub_ps(_mm512_loadu_ps(s + j), vtop)));
      sum = _mm512_add_ps(sum, e);
      _mm512_storeu_ps(w + j, e);
    }
    float total = _mm512_reduce_add_ps(sum);
    lse[r] = top + logf(total);
    __m512 inv = _mm512_set1_ps(1.f / total);
    for (i64 j = 0; j < columns; j += 16) store_bf(out + j, _mm512_mul_ps(_mm512_loadu_ps(w + j), inv));
  }
}

static void pack_head(const bf *x, i64 ld, i64 padded, bf *t, bf *i) {
  if (t)
    for (i64 n = 0; n < padded / 16; n++)
      for (i64 k = 0; k < 2; k++) tile_t(x + n * 16 * ld + k * 32, ld, t + (n * 2 + k) * TILE);
  if (i)
    for (i64 n = 0; n < 4; n++)
      for (i64 k = 0; k < padded / 32; k++) tile_i(x + k * 32 * ld + n * 16, ld, i + (n * (padded / 32) + k) * TILE);
}

// qkv rows: 9 query heads (rotated, scaled), 3 key heads (rotated), 3 value heads of 64. Buffers have 32
// spare rows at the end. lse: heads x m.
void attention_forward(const bf *qkv, const int *starts, i64 groups, i64 m, const int *region, const int *own, bf *out,
                       float *lse) {
  const i64 row = 960, width = 576;
#pragma omp parallel
  {
    configure_tiles();
    bf *kt = 0, *vi = 0, *p = 0;
    float *s = 0;
    i64 room = 0;
    alignas(64) float block[1024];
#pragma omp for schedule(dynamic) collapse(2)
    for (i64 g = 0; g < groups; g++)
      for (int kv = 0; kv < 3; kv++) {
        i64 a = starts[g], n = starts[g + 1] - a, padded = (n + 31) / 32 * 32;
        if (padded > room) {
          room = padded;
          free(kt); free(vi); free(p); free(s);
          kt = (bf *)aligned_alloc(64, room * 128); vi = (bf *)aligned_alloc(64, room * 128);
          p = (bf *)aligned_alloc(64, room * 64); s = (float *)aligned_alloc(64, room * 128);
        }
        pack_head(qkv + a * row + (9 + kv) * 64, row, padded, kt, 0);
        pack_head(qkv + a * row + (12 + kv) * 64, row, padded, 0, vi);
        for (int h = kv * 3; h < kv * 3 + 3; h++)
          for (i64 i = 0; i < padded; i += 32) {
            const char *q = (const char *)(qkv + (a + i) * row + h * 64);
            i64 columns = i + 32;
            for (i64 j = 0; j < columns; j += 32)
              product(q, q + 16 * row * 2, row * 2, 64, (char *)(kt + (j / 16) * 2 * TILE),
                      (char *)(kt + (j / 16 + 1) * 2 * TILE), 2, s + j, columns, false);
            i64 rows = n - i < 32 ? n - i : 32;
            softmax_rows(s, columns, i, rows, columns, region + a, own + a, lse + h * m + a + i, p, columns);
            for (int j = 0; j < 64; j += 32) {
              product((char *)p, (char *)(p + 16 * columns), columns * 2, 64, (char *)(vi + (j / 16) * (padded / 32) * TILE),
                      (char *)(vi + (j / 16 + 1) * (padded / 32) * TILE), (int)(columns / 32), block, 32, false);
              for (i64 r = 0; r < rows; r++)
                for (int e = 0; e < 32; e += 16)
                  store_bf(out + (a + i + r) * width + h * 64 + j + e, _mm512_load_ps(block + r * 32 + e));
            }
          }
      }
    free(kt); free(vi); free(p); free(s);
    _tile_release();
  }
}

// dqkv gets gradients of the rotated and scaled queries and keys, and of the values.
void attention_backward(const bf *qkv, const bf *out, const bf *dout, const float *lse, const int *starts, i64 groups,
                        i64 m, const int *region, const int *own, bf *dqkv) {
  const i64 row = 960, width = 576;
#pragma omp parallel
  {
    configure_tiles();
    char *pool = 0;
    i64 room = 0;
    alignas(64) float block[1024];
#pragma omp for schedule(dynamic) collapse(2)
    for (i64 g = 0; g < groups; g++)
      for (int kv = 0; kv < 3; kv++) {
        i64 a = starts[g], n = starts[g + 1] - a, padded = (n + 31) / 32 * 32, kt32 = padded / 32;
        if (padded > room) {
          room = padded;
          free(pool);
          // k and v packed twice each, q and dout packed once, two n x n matrices plus one packed, scores, sums
          pool = (char *)aligned_alloc(64, room * 128 * 6 + room * room * 6 + room * 256 + room * 512);
        }
        char *at = pool;
        bf *k_t = (bf *)at; at += padded * 128;
        bf *k_i = (bf *)at; at += padded * 128;
        bf *v_t = (bf *)at; at += padded * 128;
        bf *q_i = (bf *)at; at += padded * 128;
        bf *o_i = (bf *)at; at += padded * 128;
        bf *p = (bf *)at; at += padded * padded * 2;
        bf *ds = (bf *)at; at += padded * padded * 2;
        bf *packed = (bf *)at; at += padded * padded * 2;
        float *s = (float *)at; at += padded * 128;
        float *dp = (float *)at; at += padded * 128;
        float *dk = (float *)at; at += padded * 256;
        float *dv = (float *)at;
        const bf *K = qkv + a * row + (9 + kv) * 64, *V = qkv + a * row + (12 + kv) * 64;
        pack_head(K, row, padded, k_t, k_i);
        pack_head(V, row, padded, v_t, 0);
        for (int h = kv * 3; h < kv * 3 + 3; h++) {
          bool later = h > kv * 3;
          pack_head(qkv + a * row + h * 64, row, padded, 0, q_i);
          pack_head(dout + a * width + h * 64, width, padded, 0, o_i);
          for (i64 i = 0; i < padded; i += 32) {
            const char *q = (const char *)(qkv + (a + i) * row + h * 64);
            const char *o = (const char *)(dout + (a + i) * width + h * 64);
            i64 columns = i + 32, rows = n - i < 32 ? n - i : 32;
            for (i64 j = 0; j < columns; j += 32) {
              product(q, q + 16 * row * 2, row * 2, 64, (char *)(k_t + (j / 16) * 2 * TILE),
                      (char *)(k_t + (j / 16 + 1) * 2 * TILE), 2, s + j, columns, false);
              product(o, o + 16 * width * 2, width * 2, 64, (char *)(v_t + (j / 16) * 2 * TILE),
                      (char *)(v_t + (j / 16 + 1) * 2 * TILE), 2, dp + j, columns, false);
            }
            for (i64 r = 0; r < 32; r++) {
              bf *pr = p + (i + r) * padded, *dr = ds + (i + r) * padded;
              if (r >= rows) { memset(pr, 0, columns * 2); memset(dr, 0, columns * 2); continue; }
              i64 t = i + r, re = region[a + t] < t + 1 ? region[a + t] : t + 1;
              const bf *x = out + (a + t) * width + h * 64, *y = dout + (a + t) * width + h * 64;
              __m512 dot = _mm512_setzero_ps();
              for (int e = 0; e < 64; e += 16) dot = _mm512_fmadd_ps(load_bf(x + e), load_bf(y + e), dot);
              __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(dot)), level = _mm512_set1_ps(lse[h * m + a + t]);
              __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
              __m512i vre = _mm512_set1_epi32((int)re), vfrom = _mm512_set1_epi32(own[a + t]), vt = _mm512_set1_epi32((int)t);
              for (i64 j = 0; j < columns; j += 16) {
                VISIBLE(j, mask)
                __m512 e = _mm512_maskz_mov_ps(mask, exp16(_mm512_sub_ps(_mm512_loadu_ps(s + r * columns + j), level)));
                store_bf(pr + j, e);
                store_bf(dr + j, _mm512_mul_ps(e, _mm512_maskz_sub_ps(mask, _mm512_loadu_ps(dp + r * columns + j), mean)));
              }
            }
            for (int j = 0; j < 64; j += 32) {
              const char *d0 = (const char *)(ds + i * padded);
              product(d0, d0 + 16 * padded * 2, padded * 2, 64, (char *)(k_i + (j / 16) * kt32 * TILE),
                      (char *)(k_i + (j / 16 + 1) * kt32 * TILE), (int)(columns / 32), block, 32, false);
              for (i64 r = 0; r < rows; r++)
                for (int e = 0; e < 32; e += 16)
                  store_bf(dqkv + (a + i + r) * row + h * 64 + j + e, _mm512_load_ps(block + r * 32 + e));
            }
          }
          for (int which = 0; which < 2; which++) {
            const bf *source = which ? ds : p, *other = which ? q_i : o_i;
            float *sum = which ? dk : dv;
            for (i64 c = 0; c < padded / 16; c++)
              for (i64 k = c / 2; k < kt32; k++)
                tile_it(source + k * 32 * padded + c * 16, padded, packed + (c * kt32 + k) * TILE);
            for (i64 i = 0; i < padded; i += 32)
              for (int j = 0; j < 64; j += 32) {
                i64 k = i / 32;
                const char *x = (const char *)(packed + ((i / 16) * kt32 + k) * TILE);
                const char *b = (const char *)(other + ((j / 16) * kt32 + k) * TILE);
                product(x, x + kt32 * TILE * 2, 64, TILE * 2, b, b + kt32 * TILE * 2, (int)(kt32 - k), sum + i * 64 + j, 64, later);
              }
          }
        }
        for (i64 t = 0; t < n; t++)
          for (int e = 0; e < 64; e += 16) {
            store_bf(dqkv + (a + t) * row + (9 + kv) * 64 + e, _mm512_loadu_ps(dk + t * 64 + e));
            store_bf(dqkv + (a + t) * row + (12 + kv) * 64 + e, _mm512_loadu_ps(dv + t * 64 + e));
          }
      }
    free(pool);
    _tile_release();
  }
}

// Logits (rows x n, bf16) become the gradient of the mean loss in place; rows from `real` on become 0.
double cross_entropy(bf *logits, const int *labels, i64 real, i64 rows, i64 n) {
  double loss = 0;
#pragma omp parallel for schedule(dynamic, 4) reduction(+ : loss)
  for (i64 t = 0; t < rows; t++) {
    bf *r = logits + t * n;
    if (t >= real) { memset(r, 0, n * 2); continue; }
    __m512 best = _mm512_set1_ps(-1e30f), sum = _mm512_setzero_ps();
    for (i64 j = 0; j < n; j += 16) best = _mm512_max_ps(best, load_bf(r + j));
    float top = _mm512_reduce_max_ps(best);
    __m512 vtop = _mm512_set1_ps(top);
    for (i64 j = 0; j < n; j += 16) sum = _mm512_add_ps(sum, exp16(_mm512_sub_ps(load_bf(r + j), vtop)));
    float lse = top + logf(_mm512_reduce_add_ps(sum));
    float right = as_float(r[labels[t]]);
    loss += lse - right;
    __m512 level = _mm512_set1_ps(lse), scale = _mm512_set1_ps(1.f / real);
    for (i64 j = 0; j < n; j += 16)
      store_bf(r + j, _mm512_mul_ps(exp16(_mm512_sub_ps(load_bf(r + j), level)), scale));
    __m128bh one = _mm_cvtneps_pbh(_mm_set_ss((expf(right - lse) - 1.f) / real));
    memcpy(r + labels[t], &one, 2);
  }
  return loss / real;
}

void embed(const bf *table, const int *tokens, i64 m, i64 d, float *x) {
#pragma omp parallel for schedule(dynamic, 64)
  for (i64 t = 0; t < m; t++)
    for (i64 j = 0; j < d; j += 16) _mm512_storeu_ps(x + t * d + j, load_bf(table + (i64)tokens[t] * d + j));
}
void embed_backward(const float *dx, const int *tokens, i64 m, i64 d, float *gradient) {
  for (i64 t = 0; t < m; t++)
    for (i64 j = 0; j < d; j += 16) {
      float *g = gradient + (i64)tokens[t] * d + j;
      _mm512_storeu_ps(g, _mm512_add_ps(_mm512_loadu_ps(g), _mm512_loadu_ps(dx + t * d + j)));
    }
}

double squares(const float *g, i64 n) {
  double sum = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : sum)
  for (i64 b = 0; b < (n + 65535) / 65536; b++) {
    i64 end = (b + 1) * 65536 < n ? (b + 1) * 65536 : n;
    __m512 s = _mm512_setzero_ps();
    for (i64 j = b * 65536; j < end; j += 16) { __m512 v = _mm512_loadu_ps(g + j); s = _mm512_fmadd_ps(v, v, s); }
    sum += _mm512_reduce_add_ps(s);
  }
  return sum;
}

// One AdamW step over n values (a multiple of 16), with the bf16 copy written as well (if there is one).
void adamw(float *w, float *first, float *second, const float *g, bf *copy, i64 n, float scale, float rate, float decay,
           float b1, float b2, float c1, float c2) {
  __m512 vs = _mm512_set1_ps(scale), keep = _mm512_set1_ps(1.f - rate * decay), v1 = _mm512_set1_ps(b1), v2 = _mm512_set1_ps(b2);
  __m512 u1 = _mm512_set1_ps(1.f - b1), u2 = _mm512_set1_ps(1.f - b2), step = _mm512_set1_ps(rate / c1);
  __m512 root = _mm512_set1_ps(1.f / sqrtf(c2)), eps = _mm512_set1_ps(1e-8f);
#pragma omp parallel for schedule(dynamic, 1)
  for (i64 b = 0; b < (n + 65535) / 65536; b++) {
    i64 end = (b + 1) * 65536 < n ? (b + 1) * 65536 : n;
    for (i64 j = b * 65536; j < end; j += 16) {
      __m512 x = _mm512_mul_ps(_mm512_loadu_ps(g + j), vs);
      __m512 m = _mm512_fmadd_ps(_mm512_loadu_ps(first + j), v1, _mm512_mul_ps(x, u1));
      __m512 v = _mm512_fmadd_ps(_mm512_loadu_ps(second + j), v2, _mm512_mul_ps(_mm512_mul_ps(x, x), u2));
      _mm512_storeu_ps(first + j, m);
      _mm512_storeu_ps(second + j, v);
      __m512 under = _mm512_fmadd_ps(_mm512_sqrt_ps(v), root, eps);
      __m512 y = _mm512_fnmadd_ps(step, _mm512_div_ps(m, under), _mm512_mul_ps(_mm512_loadu_ps(w + j), keep));
      _mm512_storeu_ps(w + j, y);
      if (copy) store_bf(copy + j, y);
    }
  }
}

void to_bf16(const float *x, i64 n, bf *y) {
#pragma omp parallel for schedule(dynamic, 1)
  for (i64 b = 0; b < (n + 65535) / 65536; b++) {
    i64 end = (b + 1) * 65536 < n ? (b + 1) * 65536 : n;
    for (i64 j = b * 65536; j < end; j += 16) store_bf(y + j, _mm512_loadu_ps(x + j));
  }
}
}
