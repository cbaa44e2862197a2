// SPDX-License-Identifier: Apache-2.0
//
// Loads an application from a jar that holds its libraries as jars, as Spring Boot packs it:
// classes and resources exist as streams only, and no URL of theirs can be opened as a file.

package ai.waste.tests;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

final class NestedJarLoader extends ClassLoader {
  private static final String CLASSES = "BOOT-INF/classes/";

  private final Map<String, byte[]> files = new HashMap<>();

  NestedJarLoader(Path app) throws IOException {
    super(ClassLoader.getPlatformClassLoader());
    try (InputStream in = Files.newInputStream(app)) {
      read(in);
    }
  }

  /** Runs Hello of an application twice, each time in a class loader of its own. */
  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 2; i++) {
      final Class<?> hello = new NestedJarLoader(Path.of(arguments[0])).loadClass("Hello");
      hello
          .getMethod("main", String[].class)
          .invoke(null, (Object) new String[] {arguments[1]});
    }
  }

  private void read(InputStream in) throws IOException {
    final ZipInputStream zip = new ZipInputStream(in);
    for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
      final byte[] bytes = zip.readAllBytes();
      if (entry.getName().endsWith(".jar")) {
        read(new ByteArrayInputStream(bytes));
      } else {
        files.put(entry.getName().replace(CLASSES, ""), bytes);
      }
    }
  }

  @Override
  protected Class<?> findClass(String name) throws ClassNotFoundException {
    final byte[] bytes = files.get(name.replace('.', '/') + ".class");
    if (bytes == null) throw new ClassNotFoundException(name);
    return defineClass(name, bytes, 0, bytes.length);
  }

  @Override
  public InputStream getResourceAsStream(String name) {
    final byte[] bytes = files.get(name);
    return bytes == null ? super.getResourceAsStream(name) : new ByteArrayInputStream(bytes);
  }
}
