// SPDX-License-Identifier: Apache-2.0

// Package cwaste is the layer that SWIG writes over the C header, and how it is compiled and
// linked. By default, and with the tag waste_dynamic, that is libwaste as the linker finds it
// (CGO_LDFLAGS). With the tag waste_static it is the archive of the engine in lib/GOOS_GOARCH,
// which is not in the repository: bindings/go/package.sh puts it there.
package cwaste

// #cgo CFLAGS: -fno-strict-aliasing
// #cgo !waste_static LDFLAGS: -lwaste
// #cgo waste_static,linux,amd64 LDFLAGS: ${SRCDIR}/lib/linux_amd64/libwaste_static.a
// #cgo waste_static,linux,arm64 LDFLAGS: ${SRCDIR}/lib/linux_arm64/libwaste_static.a
// #cgo waste_static,linux LDFLAGS: -lstdc++ -lm -lpthread -ldl
// #cgo waste_static,darwin,amd64 LDFLAGS: ${SRCDIR}/lib/darwin_amd64/libwaste_static.a -lc++
// #cgo waste_static,darwin,arm64 LDFLAGS: ${SRCDIR}/lib/darwin_arm64/libwaste_static.a -lc++
// #cgo waste_static,windows,amd64 LDFLAGS: ${SRCDIR}/lib/windows_amd64/libwaste_static.a
// #cgo waste_static,windows LDFLAGS: -lstdc++ -lm -static
import "C"
