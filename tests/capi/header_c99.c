/* SPDX-License-Identifier: Apache-2.0
 *
 * The public header as C99, -pedantic -Werror: the example of its first comment, compiled and run.
 */
#include <string.h>
#include <waste/waste.h>

int64_t header_c99_ask(const char *path, const char *prompt, char *text, int64_t text_size);

static int32_t append(void *user, const char *text, int64_t text_size) {
  strncat((char *)user, text, (size_t)text_size);
  return 0;
}

int64_t header_c99_ask(const char *path, const char *prompt, char *text, int64_t text_size) {
  waste_model *model = NULL;
  waste_session *session = NULL;
  waste_generation *answer = NULL;
  waste_error error;
  int64_t result;
  memset(text, 0, (size_t)text_size);
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  result = waste_open(path, -1, NULL, &model, &error);
  if (result == WASTE_OK) result = waste_session_create(model, NULL, &session, &error);
  if (result == WASTE_OK) result = waste_generate(session, prompt, -1, NULL, &answer, &error);
  if (result == WASTE_OK) result = waste_generate_with(answer, append, text, &error);
  waste_free(model); /* the order does not matter */
  waste_free(session);
  waste_free(answer);
  return result;
}
