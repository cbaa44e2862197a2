// SPDX-License-Identifier: Apache-2.0
//
// A model: where everything starts. Each static method loads the native library first.

package ai.waste;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;

/**
 * An open model: weights, cache and threads, shared by its sessions. For any number of threads.
 * Using a closed model is an {@link IllegalStateException}.
 */
public final class WasteModel implements AutoCloseable {
  private static final int LINE_BYTES = 1024;

  final Handle handle;
  private final ModelInfo info;

  private WasteModel(long address) {
    handle = new Handle("model", null, address);
    handle.ownedBy(this);
    info = readInfo();
  }

  /** The version of the native library. Errors: {@link WasteNativeLoadException}. */
  public static String libraryVersion() {
    NativeLibrary.require();
    return Utf8.decode(Utf8.collect(LINE_BYTES, WasteNative::waste_version));
  }

  /**
   * What opening would cost, without loading anything. A budget below the floor is no error here.
   *
   * @throws ModelFormatException if this is no container, a damaged one, or a newer one
   * @throws WasteException {@code IO}, {@code UNSUPPORTED} or {@code ARGUMENT}
   */
  public static MemoryPlan plan(Path path, ModelOptions options) {
    NativeLibrary.require();
    final byte[] name = Utf8.encode(path);
    final NativeError error = new NativeError();
    final waste_open_options wanted = options.toNative();
    final waste_memory_plan out = new waste_memory_plan();
    try {
      error.check(WasteNative.waste_plan(name, wanted, out, error.image));
      return new MemoryPlan(out);
    } finally {
      wanted.delete();
      out.delete();
    }
  }

  /** Opens a container with default options. */
  public static WasteModel open(Path path) {
    return open(path, ModelOptions.defaults());
  }

  /** Opens a container. See {@link #open(Path, ModelOptions, ProgressListener)}. */
  public static WasteModel open(Path path, ModelOptions options) {
    return open(path, options, progress -> {});
  }

  /**
   * Opens a container, which is a folder. Blocks until it is loaded; an interrupt of this thread
   * stops that. Errors are those of {@link #plan}, and:
   *
   * @throws RamBudgetException if the budget is below the floor
   * @throws OperationCancelledException after an interrupt, whose flag stays set
   */
  public static WasteModel open(Path path, ModelOptions options, ProgressListener listener) {
    try (Job<WasteModel> job = openJob(path, options)) {
      return job.await(listener);
    }
  }

  /** Opens a container on another thread. The job's result is the model; close both. */
  public static Job<WasteModel> openJob(Path path, ModelOptions options) {
    NativeLibrary.require();
    final byte[] name = Utf8.encode(path);
    final NativeError error = new NativeError();
    final long[] made = new long[1];
    final waste_open_options wanted = options.toNative();
    try {
      error.check(WasteNative.waste_open_job(name, wanted, made, error.image));
    } finally {
      wanted.delete();
    }
    return new Job<>(made[0], WasteModel::ofJob);
  }

  /** Starts to read every byte of a container and to check all that can be checked. */
  public static Job<Void> verify(Path path) {
    NativeLibrary.require();
    final byte[] name = Utf8.encode(path);
    final NativeError error = new NativeError();
    final long[] made = new long[1];
    error.check(WasteNative.waste_verify(name, made, error.image));
    return new Job<>(made[0], job -> null);
  }

  /**
   * Starts to convert a folder of Hugging Face to a container. {@code target} must not exist, and
   * appears only when it is complete.
   */
  public static Job<Void> convert(Path source, Path target, ConvertOptions options) {
    NativeLibrary.require();
    final byte[] from = Utf8.encode(source);
    final byte[] to = Utf8.encode(target);
    final NativeError error = new NativeError();
    final long[] made = new long[1];
    final waste_convert_options wanted = options.toNative();
    try {
      error.check(WasteNative.waste_convert(from, to, wanted, made, error.image));
    } finally {
      wanted.delete();
    }
    return new Job<>(made[0], job -> null);
  }

  /**
   * Starts to write a container of random weights in the true shape of a model, for measuring.
   * {@code target} must not exist, and appears only when it is complete.
   *
   * @param shape {@code "mini"}, {@code "kimi-linear-48b"} or {@code "k3"}
   * @throws WasteException {@code ARGUMENT} for another shape, or more layers or experts than it
   *     has; what the work itself fails with comes from {@link Job#await()}
   */
  public static Job<Void> synthesize(String shape, Path target, SynthesisOptions options) {
    NativeLibrary.require();
    final byte[] name = Utf8.encode(Objects.requireNonNull(shape), "shape");
    final byte[] to = Utf8.encode(target);
    final NativeError error = new NativeError();
    final long[] made = new long[1];
    final waste_synthesis_options wanted = options.toNative();
    try {
      error.check(WasteNative.waste_synthesize(name, to, wanted, made, error.image));
    } finally {
      wanted.delete();
    }
    return new Job<>(made[0], job -> null);
  }

  /** What the model is. Stays readable when it is closed. */
  public ModelInfo info() {
    return info;
  }

  /** Counters of this model. */
  public Stats stats() {
    return Stats.read(handle, this, WasteNative::waste_model_stats);
  }

  /** The next line that the model has to say (what was fallen back to); null if there is none. */
  public String nextLogLine() {
    return nextLogLine(handle, this);
  }

  /** The tokenizer. */
  public Tokenizer tokenizer() {
    return new Tokenizer(this);
  }

  /** A conversation with default options. */
  public ChatSession newChat() {
    return newChat(SessionOptions.defaults());
  }

  /**
   * A conversation. Takes the memory of a whole context from the model's budget.
   *
   * @throws RamBudgetException if nothing of the budget is left to take
   * @throws WasteException {@code UNSUPPORTED} for a system message without a chat format
   */
  public ChatSession newChat(SessionOptions options) {
    final ChatSession chat = new ChatSession(this, createSession(options));
    try {
      if (options.system() != null) chat.addMessage(Role.SYSTEM, options.system());
      return chat;
    } catch (RuntimeException e) {
      chat.close();
      throw e;
    }
  }

  /** A plain session with default options. */
  public Session newSession() {
    return newSession(SessionOptions.defaults());
  }

  /** A plain session, whose prompts are text to continue. Errors are those of a chat. */
  public Session newSession(SessionOptions options) {
    return new Session(this, createSession(options));
  }

  /**
   * Cancels the answers and evals of its sessions, closes the sessions, waits up to a second for
   * what is inside, and frees. Any thread, any time; does nothing the second time.
   */
  @Override
  public void close() {
    handle.close();
  }

  /** A longer line is cut at a character by the library. */
  static String nextLogLine(Handle handle, Object owner) {
    final byte[] line = new byte[LINE_BYTES];
    final long size =
        handle.call(owner, (object, error) -> WasteNative.waste_log_next(object, line, error));
    return size == 0 ? null : Utf8.decode(Arrays.copyOf(line, (int) size));
  }

  private static WasteModel ofJob(long job) {
    final NativeError error = new NativeError();
    final long[] made = new long[1];
    error.check(WasteNative.waste_job_model(job, made, error.image));
    return new WasteModel(made[0]);
  }

  private long createSession(SessionOptions options) {
    final long[] made = new long[1];
    final waste_session_options wanted = Objects.requireNonNull(options).toNative();
    try {
      handle.call(
          this,
          (object, error) -> WasteNative.waste_session_create(object, wanted, made, error));
    } finally {
      wanted.delete();
    }
    return made[0];
  }

  private ModelInfo readInfo() {
    final byte[] name =
        Utf8.collect(
            LINE_BYTES,
            buffer ->
                handle.call(
                    this,
                    (object, error) -> WasteNative.waste_model_name(object, buffer, error)));
    final waste_info out = new waste_info();
    try {
      handle.call(this, (object, error) -> WasteNative.waste_model_info(object, out, error));
      return new ModelInfo(Utf8.decode(name), out);
    } finally {
      out.delete();
    }
  }
}
