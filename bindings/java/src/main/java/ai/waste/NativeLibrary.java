// SPDX-License-Identifier: Apache-2.0
//
// Loads libwaste_jni once for this class loader, from the first of three places, and compares its
// ABI with these classes. Prints nothing: everything that was tried is in the one exception.
//
//   1. -Dwaste.library.path=FILE or FOLDER. What is asked for by name is not replaced by another
//      one, so nothing else is tried then.
//   2. System.loadLibrary: java.library.path, and what Android puts into an app.
//   3. META-INF/native/PLATFORM/ in the jars, through the class loader (NativeFiles).

package ai.waste;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;

final class NativeLibrary {
  private static final String NAME = "waste_jni";
  private static final String PATH_PROPERTY = "waste.library.path";
  private static final int SIZE_COUNT = 64;

  private static boolean loaded;

  private NativeLibrary() {}

  private interface Loading {
    void run() throws IOException;
  }

  /** One thing that was tried. */
  private static final class Attempt {
    private final String what;
    private final Throwable failure;

    private Attempt(String what, Throwable failure) {
      this.what = what;
      this.failure = failure;
    }
  }

  /** After a failure the next call tries again. */
  static synchronized void require() {
    if (loaded) return;
    final List<Attempt> failed = new ArrayList<>();
    if (!loadFirst(failed)) throw nothingLoaded(failed);
    checkAbi();
    loaded = true;
  }

  private static boolean loadFirst(List<Attempt> failed) {
    final String asked = System.getProperty(PATH_PROPERTY);
    if (asked != null) {
      final String what = "-D" + PATH_PROPERTY + "=" + asked;
      return attempt(failed, what, () -> loadFile(askedFile(Path.of(asked))));
    }
    final String folders = System.getProperty("java.library.path", "");
    final String resource = NativeFiles.resource(NAME);
    return attempt(failed, "System.loadLibrary(\"" + NAME + "\") in " + folders, () -> loadNamed())
        || attempt(failed, "the resource " + resource, () -> loadResource(resource));
  }

  private static boolean attempt(List<Attempt> failed, String what, Loading loading) {
    try {
      loading.run();
      return true;
    } catch (IOException | RuntimeException | UnsatisfiedLinkError e) {
      failed.add(new Attempt(what, e));
      return false;
    }
  }

  private static Path askedFile(Path path) {
    return Files.isDirectory(path) ? path.resolve(System.mapLibraryName(NAME)) : path;
  }

  private static void loadFile(Path file) throws IOException {
    if (!Files.isRegularFile(file)) throw new IOException("there is no file " + file);
    try {
      System.load(file.toAbsolutePath().toString());
    } catch (UnsatisfiedLinkError e) {
      if (!isInOtherClassLoader(e)) throw e;
      NativeFiles.withCopy(file, copy -> System.load(copy.toString()));
    }
  }

  private static void loadNamed() throws IOException {
    try {
      System.loadLibrary(NAME);
    } catch (UnsatisfiedLinkError e) {
      if (!isInOtherClassLoader(e)) throw e;
      loadFile(fileOnLibraryPath());
    }
  }

  private static Path fileOnLibraryPath() throws IOException {
    final String folders = System.getProperty("java.library.path", "");
    for (String folder : folders.split(Pattern.quote(File.pathSeparator))) {
      final Path file = Path.of(folder, System.mapLibraryName(NAME));
      if (Files.isRegularFile(file)) return file;
    }
    throw new IOException("it is loaded by another class loader, from a place that is not known");
  }

  private static void loadResource(String resource) throws IOException {
    NativeFiles.withExtracted(resource, file -> loadFile(file));
  }

  /** A library file belongs to one class loader; the VM says so in these words since Java 1.2. */
  private static boolean isInOtherClassLoader(UnsatisfiedLinkError error) {
    return String.valueOf(error.getMessage()).contains("already loaded in another classloader");
  }

  private static WasteNativeLoadException nothingLoaded(List<Attempt> failed) {
    final StringBuilder message = new StringBuilder("libwaste_jni could not be loaded. Tried:");
    for (Attempt attempt : failed)
      message.append("\n  ").append(attempt.what).append(": ").append(reason(attempt.failure));
    message.append("\nAdd the jar for this platform (").append(NativeFiles.platform());
    message.append("), or set -D").append(PATH_PROPERTY).append(" to the library.");
    final WasteNativeLoadException exception = new WasteNativeLoadException(message.toString());
    for (Attempt attempt : failed) exception.addSuppressed(attempt.failure);
    return exception;
  }

  private static String reason(Throwable failure) {
    return failure.getMessage() == null ? failure.toString() : failure.getMessage();
  }

  /** What struct images and statuses rely on. */
  private static void checkAbi() {
    try {
      final int found = WasteNative.waste_abi_version();
      if (found != WasteNativeConstants.WASTE_ABI_VERSION)
        throw new WasteNativeLoadException(
            "libwaste_jni has ABI " + found + " and these classes need ABI "
                + WasteNativeConstants.WASTE_ABI_VERSION + ": take both from one release");
      final int[] engine = new int[SIZE_COUNT];
      final int[] wrapper = new int[SIZE_COUNT];
      if (WasteNative.waste_abi_sizes(engine) != WasteNative.waste_wrapper_sizes(wrapper)
          || !Arrays.equals(engine, wrapper))
        throw new WasteNativeLoadException(
            "libwaste_jni was put together from two versions: its structs differ in size");
    } catch (UnsatisfiedLinkError e) {
      throw new WasteNativeLoadException(
          "the library that was loaded is no libwaste_jni, or one of another version: "
              + e.getMessage());
    }
  }
}
