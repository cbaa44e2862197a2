// SPDX-License-Identifier: Apache-2.0
//
// The native library as a file: taken out of a jar into a cache folder named by its contents, or
// copied for a second class loader. Folders and files are the user's own (mode 700), files appear
// by an atomic rename, and what is found there is compared before it is loaded. The resource is
// read as a stream through the class loader, never through the jar as a file system: inside another
// jar there is none.

package ai.waste;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

final class NativeFiles {
  private static final String CACHE_PROPERTY = "waste.cache.path";
  private static final int CHUNK = 1 << 16;

  private NativeFiles() {}

  interface Use {
    void of(Path file) throws IOException;
  }

  /** As the jars are named: linux-x64, linux-arm64, osx-arm64, win-x64. */
  static String platform() {
    final String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
    final String machine = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
    final String os =
        system.startsWith("windows") ? "win" : system.startsWith("mac") ? "osx" : system;
    return os + "-" + machine.replace("amd64", "x64").replace("x86_64", "x64")
        .replace("aarch64", "arm64");
  }

  static String resource(String name) {
    return "META-INF/native/" + platform() + "/" + System.mapLibraryName(name);
  }

  /** Uses the file that holds a resource: a cached one, or else a private copy. */
  static void withExtracted(String resource, Use use) throws IOException {
    final String hash;
    try (InputStream in = open(resource)) {
      hash = hashOf(in);
    }
    final String name = resource.substring(resource.lastIndexOf('/') + 1);
    final Path cached = cached(resource, hash, name);
    if (cached != null) {
      use.of(cached);
    } else {
      withPrivateFile(name, file -> fill(file, resource), use);
    }
  }

  /** Uses a copy of {@code file} that no other class loader has. */
  static void withCopy(Path file, Use use) throws IOException {
    withPrivateFile(file.getFileName().toString(), copy -> Files.copy(file, copy), use);
  }

  /** The class loader's own copy; on POSIX it is gone from disk as soon as it is loaded. */
  private static void withPrivateFile(String name, Use make, Use use) throws IOException {
    final Path folder = Files.createTempDirectory("waste-");
    final Path file = folder.resolve(name);
    try {
      make.of(file);
      use.of(file);
    } finally {
      deleteNowOrAtExit(file);
      deleteNowOrAtExit(folder);
    }
  }

  private static void deleteNowOrAtExit(Path path) {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      path.toFile().deleteOnExit(); // Windows keeps a loaded library
    }
  }

  private static InputStream open(String resource) throws IOException {
    InputStream in = NativeFiles.class.getResourceAsStream("/" + resource);
    final ClassLoader loader = NativeFiles.class.getClassLoader();
    if (in == null && loader != null) in = loader.getResourceAsStream(resource);
    if (in == null) throw new FileNotFoundException("no jar has it");
    return in;
  }

  private static void fill(Path file, String resource) throws IOException {
    try (InputStream in = open(resource)) {
      Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
    }
  }

  /** Null if there is no folder that can be trusted and written. */
  private static Path cached(String resource, String hash, String name) {
    for (Path base : cacheFolders()) {
      try {
        return cachedIn(base.resolve(hash), resource, hash, name);
      } catch (IOException | SecurityException e) {
        continue; // read-only, or somebody else's: the next place, and at last a private copy
      }
    }
    return null;
  }

  private static Path cachedIn(Path folder, String resource, String hash, String name)
      throws IOException {
    Files.createDirectories(folder, ownerOnly(folder));
    checkOwn(folder);
    final Path file = folder.resolve(name);
    if (holds(file, hash)) return file;
    final Path part = Files.createTempFile(folder, name, ".part");
    try {
      fill(part, resource);
      if (!holds(part, hash)) throw new IOException("the jar changed while it was read");
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(part);
    }
    return file;
  }

  private static List<Path> cacheFolders() {
    final List<Path> folders = new ArrayList<>();
    final String asked = System.getProperty(CACHE_PROPERTY);
    if (asked != null) {
      folders.add(Path.of(asked));
      return folders;
    }
    addBelow(folders, System.getenv("XDG_CACHE_HOME"), "waste");
    addBelow(folders, System.getenv("LOCALAPPDATA"), "waste");
    final String home = System.getProperty("user.home");
    addBelow(folders, home, platform().startsWith("osx") ? "Library/Caches/waste" : ".cache/waste");
    return folders;
  }

  private static void addBelow(List<Path> folders, String base, String name) {
    if (base != null && !base.isEmpty() && Path.of(base).isAbsolute())
      folders.add(Path.of(base, name));
  }

  private static boolean isPosix(Path path) {
    return path.getFileSystem().supportedFileAttributeViews().contains("posix");
  }

  private static FileAttribute<?>[] ownerOnly(Path path) {
    if (!isPosix(path)) return new FileAttribute<?>[0];
    return new FileAttribute<?>[] {
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
    };
  }

  /** A folder that others may write to could get another library between the check and the load. */
  private static void checkOwn(Path folder) throws IOException {
    if (!isPosix(folder)) return;
    final Set<PosixFilePermission> granted = Files.getPosixFilePermissions(folder);
    if (granted.contains(PosixFilePermission.GROUP_WRITE)
        || granted.contains(PosixFilePermission.OTHERS_WRITE))
      throw new IOException("others may write to " + folder);
  }

  private static boolean holds(Path file, String hash) throws IOException {
    if (!Files.isRegularFile(file)) return false;
    try (InputStream in = Files.newInputStream(file)) {
      return hashOf(in).equals(hash);
    }
  }

  private static String hashOf(InputStream in) throws IOException {
    final MessageDigest digest;
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IOException("this Java has no SHA-256", e);
    }
    final byte[] chunk = new byte[CHUNK];
    for (int count = in.read(chunk); count >= 0; count = in.read(chunk))
      digest.update(chunk, 0, count);
    final StringBuilder hex = new StringBuilder();
    for (byte b : digest.digest()) hex.append(String.format(Locale.ROOT, "%02x", b));
    return hex.toString();
  }
}
