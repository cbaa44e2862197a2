/* SPDX-License-Identifier: Apache-2.0
 *
 * libwaste: mixture-of-experts language models larger than memory, as a library.
 *
 *   waste_model *model = NULL; waste_session *session = NULL; waste_generation *answer = NULL;
 *   waste_open("mini.waste", -1, NULL, &model, NULL);
 *   waste_session_create(model, NULL, &session, NULL);
 *   waste_generate(session, "What is the capital of Italy?", -1, NULL, &answer, NULL);
 *   char piece[256]; int64_t n;
 *   while ((n = waste_next(answer, piece, sizeof piece, NULL, NULL)) > 0)
 *     fwrite(piece, 1, n, stdout);
 *   waste_free(answer); waste_free(session); waste_free(model);
 *
 * Rules that hold for every function (docs/capi.md explains them):
 *   text      UTF-8 bytes and their count; a count of -1 means NUL-terminated. Invalid UTF-8 is
 *             WASTE_ERR_ARGUMENT with the offset. Paths are raw bytes on POSIX.
 *   errors    a waste_status < 0, and in `error` (may be NULL) the code and a message that names
 *             the file, the record and the numbers. On failure outputs are untouched and every
 *             handle stays as valid as it was. Nothing is thrown, printed, or kept per thread.
 *   structs   set struct_size = sizeof the struct (or call its _init); zero in any other field
 *             means the default in brackets.
 *   arrays    the caller's buffer and its capacity in elements; the result is the count that the
 *             whole answer has, which may be more than was written.
 *   handles   freed by waste_free in any order, from any thread. A generation keeps its session
 *             alive, a session its model. Passing a handle of another kind is WASTE_ERR_ARGUMENT;
 *             passing a freed one is the caller's error.
 *   threads   a model may be used by any number of threads. A session and its generation are for
 *             one call at a time: a second one gets WASTE_ERR_BUSY. waste_cancel is for any thread.
 *             Sessions of one model that run tokens at the same time share the model's steps.
 *
 * The ABI is number 0: it may change until all bindings use it.
 */
#ifndef WASTE_WASTE_H_
#define WASTE_WASTE_H_

#include <stdint.h>

#if defined(_WIN32)
#define WASTE_API __declspec(dllexport)
#elif defined(__GNUC__)
#define WASTE_API __attribute__((visibility("default")))
#else
#define WASTE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WASTE_ABI_VERSION 0

typedef int32_t waste_status; /* 0 ok; < 0 one of the errors below; values are never reused */

#define WASTE_OK 0
#define WASTE_ERR_IO (-1)          /* the system refused an open, a read or a write */
#define WASTE_ERR_FORMAT (-2)      /* this is not a file that the library understands */
#define WASTE_ERR_CORRUPT (-3)     /* it is one, and it is damaged: copy or convert it again */
#define WASTE_ERR_UNSUPPORTED (-4) /* it is sound, and this build cannot run it */
#define WASTE_ERR_ARGUMENT (-5)    /* the caller asked for something that cannot be */
#define WASTE_ERR_RAM_BUDGET (-6)  /* the budget is below the floor: error->needed_bytes */
#define WASTE_ERR_NO_MEMORY (-7)   /* the system gave no memory */
#define WASTE_ERR_CONTEXT_FULL (-8)/* the text does not fit the session's context */
#define WASTE_ERR_BUSY (-9)        /* another call on this session runs, or a generation lives */
#define WASTE_ERR_CANCELLED (-10)  /* waste_cancel was called */
#define WASTE_ERR_VERSION (-11)    /* the file was written by a newer version */
#define WASTE_ERR_INTERNAL (-12)   /* a bug of the library: please report the message */

#define WASTE_RUNNING 1 /* waste_job_wait: the time ran out before the job ended */

#define WASTE_ROLE_SYSTEM 0
#define WASTE_ROLE_USER 1
#define WASTE_ROLE_ASSISTANT 2

#define WASTE_CHANNEL_RESPONSE 0
#define WASTE_CHANNEL_THINKING 1
#define WASTE_CHANNEL_TOOL 2

#define WASTE_FINISH_NONE 0      /* still going */
#define WASTE_FINISH_STOP 1      /* the model ended its turn, or a stop string or token came */
#define WASTE_FINISH_LENGTH 2    /* max_tokens or the context is reached */
#define WASTE_FINISH_CANCELLED 3 /* waste_cancel */

#define WASTE_IO_AUTO 0
#define WASTE_IO_DIRECT 1
#define WASTE_IO_BUFFERED 2

#define WASTE_ARITHMETIC_FAST 0  /* products may be off where that is faster, by 0.01 % of their
                                    rms in the trunk and 0.1 % in experts */
#define WASTE_ARITHMETIC_EXACT 1 /* f32 over dequantised weights */

#define WASTE_ISA_BEST 0
#define WASTE_ISA_SCALAR 1
#define WASTE_ISA_AVX2 2
#define WASTE_ISA_AVX512 3
#define WASTE_ISA_NEON 4
#define WASTE_ISA_AVX512_VBMI 5 /* AVX-512 with VBMI and VNNI: what fast arithmetic uses */

/* What went wrong, in the caller's memory. `message` is UTF-8, cut at a character, with a NUL. */
typedef struct waste_error {
  uint32_t struct_size;
  int32_t code;
  int64_t needed_bytes; /* WASTE_ERR_RAM_BUDGET: the smallest budget that would do; else 0 */
  char message[500];
} waste_error;

typedef struct waste_model waste_model;           /* weights, cache, threads: shared by sessions */
typedef struct waste_session waste_session;       /* one conversation */
typedef struct waste_generation waste_generation; /* one answer in progress */
typedef struct waste_job waste_job;               /* long work on a thread of its own */

typedef struct waste_open_options {
  uint32_t struct_size;
  int32_t threads;      /* [the CPUs of cpu_list; without one, the cores granted to this process,
                           of these the fast ones if some are below 70 % of the best] */
  int64_t budget_bytes; /* RAM for everything of this model [automatic, see waste_plan] */
  int64_t context;      /* positions a session may hold [the model's maximum, at most 8192] */
  int32_t io;           /* WASTE_IO_... [auto: direct where the drive allows it] */
  int32_t verify;       /* 1: check the checksum of every record that is read [0: headers only] */
  int32_t lookahead;    /* read experts that the next layer is likely to need: 0 or 1 on, 2 off */
  int32_t arithmetic;   /* WASTE_ARITHMETIC_... [fast] */
  int32_t isa;          /* WASTE_ISA_... [best]; one that this machine lacks is UNSUPPORTED */
  int32_t read_lanes;   /* experts read at once, at most 32 [2, 4 or 8, as measured at open] */
  const char *cpu_list; /* Linux: CPUs to compute on, as "0-3,8", UTF-8 with a NUL, read before the
                           call returns [NULL or "": the fast ones if threads is 0 too and some
                           are slow, else wherever the system puts the threads] */
} waste_open_options;

typedef struct waste_session_options {
  uint32_t struct_size;
  int32_t thinking; /* 1: the model may think before it answers, where it can [0] */
  int64_t context;  /* positions [the context of the open] */
} waste_session_options;

typedef struct waste_generation_options {
  uint32_t struct_size;
  int32_t max_tokens;       /* [until the turn ends or the context is full] */
  double temperature;       /* [0: greedy, the likeliest token each time] */
  double top_p;             /* keep the smallest set of tokens of this probability [1] */
  double min_p;             /* drop tokens below this share of the likeliest [0] */
  double repeat_penalty;    /* divides (or multiplies) the logits of recent tokens [1] */
  double presence_penalty;  /* subtracted once from a token that occurred recently [0] */
  double frequency_penalty; /* subtracted for each recent occurrence [0] */
  int64_t seed;             /* same seed, same text; 0 is a seed like any other */
  int32_t top_k;            /* keep the k likeliest tokens [all] */
  int32_t penalty_window;   /* tokens that count as recent [64] */
  int32_t logprobs;         /* 1: log-probabilities of the tokens are kept [0] */
  int32_t raw;              /* 1: the prompt is plain text to continue, not a user's message [0] */
  int32_t markup_out;       /* 1: special tokens come out as their text too [0] */
  int32_t reserved;         /* 0 */
} waste_generation_options;

/* All in bytes. floor = trunk + state + scratch + staging. What a budget has beyond the floor is
 * the cache's, and up to a quarter of it scratch for longer steps of prefill, which read an expert
 * once for more of the prompt. */
typedef struct waste_memory_plan {
  uint32_t struct_size;
  int32_t fits;              /* 1 if the budget (asked for, or automatic) is at least floor */
  int64_t floor_bytes;       /* the smallest budget that opens this model with one session */
  int64_t recommended_bytes; /* floor and two working sets of experts */
  int64_t trunk_bytes;       /* shared weights and codebooks */
  int64_t state_bytes;       /* one session of the context asked for */
  int64_t scratch_bytes;     /* activations of a step of 256 positions */
  int64_t staging_bytes;     /* the experts one step of one layer needs, and those read ahead */
  int64_t cache_bytes;       /* experts kept beyond that */
  int64_t usable_bytes;      /* RAM this process may use (cgroup limits, reserved_bytes counted) */
  int64_t budget_bytes;      /* asked for, or automatic */
  int64_t reserved_bytes;    /* granted to other open models on this machine, and not used yet */
} waste_memory_plan;

typedef struct waste_info {
  uint32_t struct_size;
  int32_t vocab_size;
  int32_t layer_count;
  int32_t hidden_size;
  int32_t expert_count;     /* a layer */
  int32_t experts_per_token;
  int64_t context;          /* positions of a session unless it asks for fewer */
  int64_t expert_bytes;     /* one record on disk */
  int64_t container_bytes;  /* all files of the model that are read */
  int64_t budget_bytes;
  int64_t cache_slots;      /* experts that fit the memory granted */
  int32_t threads;
  int32_t isa;              /* WASTE_ISA_... in use */
  int32_t direct_io;        /* 1 if direct reads were obtained, as probed by one real read */
  int32_t thinking;         /* 1 if the model's chat format has a thinking channel */
  int32_t eos_token;        /* the token that ends a turn, -1 if none */
  int32_t has_chat;         /* 1 if the container holds a chat format */
  int64_t token_trunk_bytes; /* of weights that every token reads from memory */
  int64_t token_flops;       /* of a token's matrices, experts included: 2 a weight */
  int32_t read_lanes;        /* experts read at once; 0 without experts on disk */
  int32_t reserved;
} waste_info;

/* Counters since the object was made. A session's and a generation's count their own work: of a
 * step that several sessions shared, the part of their tokens in it. Times are those that each
 * waited, so a model's, which are their sums, may exceed the clock's. */
typedef struct waste_stats {
  uint32_t struct_size;
  int32_t finish_reason;    /* generation: WASTE_FINISH_... */
  int64_t position;         /* session: tokens held; generation: those of its session */
  int64_t context;          /* session: most it can hold */
  int64_t prompt_tokens;    /* rows that were prefilled */
  int64_t generated_tokens;
  int64_t prefill_us;
  int64_t decode_us;
  int64_t experts_hit;      /* expert uses served from memory */
  int64_t experts_missed;   /* ... read from disk */
  int64_t bytes_read;       /* of experts, those read ahead included */
  int64_t read_us;          /* time spent waiting for those reads */
  int64_t memory_bytes;     /* model: charged to the budget now; session: its own share */
  int64_t peak_rss_bytes;   /* model: of the whole process, as the system tells */
  int64_t experts_foreseen; /* of those missed, the ones whose read lookahead had begun, or ended */
  int64_t speculative_reads; /* reads of lookahead that ended, needed in the end or not */
  int64_t speculative_bytes; /* of those; part of bytes_read */
  int64_t read_stalls;      /* times that a step had nothing to do but wait for a read */
} waste_stats;

typedef struct waste_token {
  uint32_t struct_size;
  int32_t id;             /* last token that this piece consumed */
  int64_t first_index;    /* index in the answer of the first token it consumed */
  int32_t count;          /* tokens consumed: several for an emoji, none for the rest of a text */
  int32_t channel;        /* WASTE_CHANNEL_... of the text */
  double logprob;         /* of `id`, natural logarithm, before penalties; 0 unless asked for */
  int64_t position;       /* of the session after this piece */
  int32_t finish_reason;  /* WASTE_FINISH_..., set when waste_next returns 0 or an error */
  int32_t reserved;
} waste_token;

typedef struct waste_convert_options {
  uint32_t struct_size;
  int32_t threads;          /* [cores granted] */
  int32_t stages;           /* codebooks in a row for experts: 2, 3, 4 or 6 [3] */
  int32_t index_bits;       /* 8, or 6 for VQ4P (four stages of 64 entries) [8] */
  int32_t trunk_bits;       /* 3, 4 or 8 for trunk matrices [4]; embedding and head have 8 */
  int32_t expert_beam;      /* search width of the expert encoder [16]; 1 is greedy */
  int64_t quantise_from;    /* trunk tensors with fewer elements stay f32 [65536] */
} waste_convert_options;

typedef struct waste_progress {
  uint32_t struct_size;
  int32_t finished;    /* 1 once the job has ended, well or not */
  int64_t done;        /* in units of the job (tensors for convert, bytes for others) */
  int64_t total;       /* 0 until known */
} waste_progress;

/* Random weights in the true shape of "kimi-linear-48b", "k3" or "mini", for measuring. */
typedef struct waste_synthesis_options {
  uint32_t struct_size;
  int32_t layers;  /* the first so many, at true width [all] */
  int32_t experts; /* of each layer [all] */
  int32_t reserved; /* 0 */
  int64_t seed;    /* same seed, same bytes */
} waste_synthesis_options;

/* ---- library ---- */

/* The ABI number this library was built with. Bindings refuse another one. */
WASTE_API int32_t waste_abi_version(void);

/* "major.minor.patch", as text. Returns its length without the NUL that is written if it fits. */
WASTE_API int64_t waste_version(char *buffer, int64_t buffer_size);

/* sizeof every public struct in the order of this header (waste_error first). Returns how many. */
WASTE_API int64_t waste_abi_sizes(int32_t *sizes, int64_t size_count);

/* Fill a struct of `struct_size` bytes with zeros (the defaults) and set its first field. */
WASTE_API void waste_open_options_init(waste_open_options *options, int64_t struct_size);
WASTE_API void waste_session_options_init(waste_session_options *options, int64_t struct_size);
WASTE_API void waste_generation_options_init(waste_generation_options *options,
                                             int64_t struct_size);
WASTE_API void waste_convert_options_init(waste_convert_options *options, int64_t struct_size);
WASTE_API void waste_synthesis_options_init(waste_synthesis_options *options, int64_t struct_size);

/* Releases any object the library returned: the caller's reference ends, work under way is told to
 * stop. NULL is fine. Any thread. */
WASTE_API void waste_free(void *object);

/* Asks a generation or a job to stop: within a layer or one read. Sticky, idempotent, returns at
 * once, any thread. Of a session it stops the waste_eval that runs on it now, if one does. Another
 * kind of object, or NULL, is ignored. */
WASTE_API void waste_cancel(void *object);

/* ---- model ---- */

/* What opening would cost, without loading anything. A budget below the floor is no error here:
 * `fits` says so. Errors: IO, FORMAT, CORRUPT, UNSUPPORTED, VERSION, ARGUMENT. */
WASTE_API waste_status waste_plan(const char *path, int64_t path_size,
                                  const waste_open_options *options, waste_memory_plan *out,
                                  waste_error *error);

/* Opens a container (a folder such as examples/mini/mini.waste), or a scripted fake for tests
 * ("test:script.json", docs/capi.md). Blocks while the trunk loads; waste_open_job does not.
 * Errors: those of waste_plan, RAM_BUDGET, NO_MEMORY. */
WASTE_API waste_status waste_open(const char *path, int64_t path_size,
                                  const waste_open_options *options, waste_model **out,
                                  waste_error *error);

/* The same on a thread of its own. After waste_job_wait says 0, waste_job_model hands the model
 * over, once. */
WASTE_API waste_status waste_open_job(const char *path, int64_t path_size,
                                      const waste_open_options *options, waste_job **out,
                                      waste_error *error);
WASTE_API waste_status waste_job_model(waste_job *job, waste_model **out, waste_error *error);

WASTE_API waste_status waste_model_info(waste_model *model, waste_info *out, waste_error *error);
WASTE_API waste_status waste_model_stats(waste_model *model, waste_stats *out, waste_error *error);

/* The manifest's name of the architecture, e.g. "kimi-k3". */
WASTE_API int64_t waste_model_name(waste_model *model, char *buffer, int64_t buffer_size,
                                   waste_error *error);

/* ---- conversion and verification ---- */

/* Converts a Hugging Face folder to a container. `target` must not exist, and appears only when it
 * is complete. Errors of the work itself come from waste_job_wait. */
WASTE_API waste_status waste_convert(const char *source, int64_t source_size, const char *target,
                                     int64_t target_size, const waste_convert_options *options,
                                     waste_job **out, waste_error *error);

/* Writes a container of random weights, as fast as the drive takes it. `target` as above. */
WASTE_API waste_status waste_synthesize(const char *shape, int64_t shape_size, const char *target,
                                        int64_t target_size,
                                        const waste_synthesis_options *options, waste_job **out,
                                        waste_error *error);

/* Reads every byte of a container and checks all that can be checked. */
WASTE_API waste_status waste_verify(const char *path, int64_t path_size, waste_job **out,
                                    waste_error *error);

WASTE_API waste_status waste_job_progress(waste_job *job, waste_progress *out, waste_error *error);

/* Waits up to `timeout_ms` (-1: as long as it takes). 0: the job ended well; WASTE_RUNNING: it goes
 * on; < 0: why it failed. May be called again, from any thread. */
WASTE_API waste_status waste_job_wait(waste_job *job, int64_t timeout_ms, waste_error *error);

/* The next line that a model or a job has to say (what was left out, what was fallen back to), or 0
 * when there is none. Returns its length; a line longer than the buffer is cut at a character. */
WASTE_API int64_t waste_log_next(void *object, char *buffer, int64_t buffer_size,
                                 waste_error *error);

/* ---- tokens ---- */

/* Plain text to token ids; special tokens in it are text. Returns the count of all. */
WASTE_API int64_t waste_tokenize(waste_model *model, const char *text, int64_t text_size,
                                 int32_t *tokens, int64_t token_count, waste_error *error);

/* Text in which special tokens ("<|open|>") mean themselves. Never for text of a user. */
WASTE_API int64_t waste_tokenize_markup(waste_model *model, const char *text, int64_t text_size,
                                        int32_t *tokens, int64_t token_count, waste_error *error);

/* The raw bytes of the tokens, special ones as their text; may be no whole UTF-8. Returns the
 * number of all bytes. */
WASTE_API int64_t waste_detokenize(waste_model *model, const int32_t *tokens, int64_t token_count,
                                   char *buffer, int64_t buffer_size, waste_error *error);

/* ---- sessions ---- */

/* Reserves a whole context within the model's budget. Errors: RAM_BUDGET, NO_MEMORY, ARGUMENT. */
WASTE_API waste_status waste_session_create(waste_model *model,
                                            const waste_session_options *options,
                                            waste_session **out, waste_error *error);

/* Adds a whole message (WASTE_ROLE_...) to the conversation. It is prefilled by the next
 * generation. Errors: CONTEXT_FULL, ARGUMENT, UNSUPPORTED (the model has no chat format), BUSY. */
WASTE_API waste_status waste_session_add_message(waste_session *session, int32_t role,
                                                 const char *text, int64_t text_size,
                                                 waste_error *error);

/* Runs `tokens` through the model and copies out logits: `logit_count` must be a multiple of the
 * vocabulary, n x vocab_size gives those of the last n tokens, [n, vocab_size]; 0 gives none.
 * Returns the number of floats written. On failure, and when waste_cancel or waste_free stops it,
 * the session holds what it held. Errors: CONTEXT_FULL, ARGUMENT, IO, CORRUPT, BUSY, CANCELLED. */
WASTE_API int64_t waste_eval(waste_session *session, const int32_t *tokens, int64_t token_count,
                             float *logits, int64_t logit_count, waste_error *error);

/* The tokens that the session holds. Returns their count. */
WASTE_API int64_t waste_session_tokens(waste_session *session, int32_t *tokens,
                                       int64_t token_count, waste_error *error);

/* Forgets everything. */
WASTE_API waste_status waste_session_reset(waste_session *session, waste_error *error);

/* Goes back to the first `position` tokens. Restores the nearest snapshot at or before it and runs
 * the tokens between again, which costs that. */
WASTE_API waste_status waste_session_rewind(waste_session *session, int64_t position,
                                            waste_error *error);

/* A second session that holds the same. Charged to the budget like a new one. */
WASTE_API waste_status waste_session_fork(waste_session *session, waste_session **out,
                                          waste_error *error);

/* Writes tokens and state to a file, or reads one back. A file of another model is refused. */
WASTE_API waste_status waste_session_save(waste_session *session, const char *path,
                                          int64_t path_size, waste_error *error);
WASTE_API waste_status waste_session_load(waste_session *session, const char *path,
                                          int64_t path_size, waste_error *error);

WASTE_API waste_status waste_session_stats(waste_session *session, waste_stats *out,
                                           waste_error *error);

/* ---- generations ---- */

/* Starts an answer and does no work yet. The prompt is a user's message, put through the model's
 * chat format (options->raw: plain text to continue); NULL after waste_session_add_message.
 * Errors leave the session as it was: CONTEXT_FULL, ARGUMENT, UNSUPPORTED, BUSY. */
WASTE_API waste_status waste_generate(waste_session *session, const char *prompt,
                                      int64_t prompt_size, const waste_generation_options *options,
                                      waste_generation **out, waste_error *error);

/* Before the first waste_next: text or a token that ends the answer and is not part of it, and a
 * number added to a token's logit (-INFINITY forbids it). */
WASTE_API waste_status waste_generation_add_stop(waste_generation *generation, const char *text,
                                                 int64_t text_size, waste_error *error);
WASTE_API waste_status waste_generation_add_stop_token(waste_generation *generation, int32_t token,
                                                       waste_error *error);
WASTE_API waste_status waste_generation_add_bias(waste_generation *generation, int32_t token,
                                                 double bias, waste_error *error);

/* Blocks until there is text: > 0 bytes of whole UTF-8 characters, 0 when the answer is finished,
 * < 0 a waste_status. The first call prefills the prompt. `buffer_size` is at least 16. */
WASTE_API int64_t waste_next(waste_generation *generation, char *buffer, int64_t buffer_size,
                             waste_token *info, waste_error *error);

/* Every token of the answer so far, those whose bytes are held back included, and their
 * log-probabilities (zeros unless asked for). Returns the count of tokens. */
WASTE_API int64_t waste_generation_tokens(waste_generation *generation, int32_t *tokens,
                                          int64_t token_count, double *logprobs,
                                          int64_t logprob_count, waste_error *error);

WASTE_API waste_status waste_generation_stats(waste_generation *generation, waste_stats *out,
                                              waste_error *error);

#ifdef __cplusplus
}
#endif

#ifndef SWIG
/* A callback form of waste_next for C: `write` gets each piece and returns 0 to go on. */
static inline waste_status waste_generate_with(waste_generation *generation,
                                               int32_t (*write)(void *user, const char *text,
                                                                int64_t text_size),
                                               void *user, waste_error *error) {
  char piece[256];
  int64_t size;
  while ((size = waste_next(generation, piece, (int64_t)sizeof piece, 0, error)) > 0)
    if (write(user, piece, size) != 0) waste_cancel(generation);
  return (waste_status)size;
}
#endif

#endif /* WASTE_WASTE_H_ */
