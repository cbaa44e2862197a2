# SPDX-License-Identifier: Apache-2.0
#
# The host's headers of this library, for a build of another system (host_headers.cmake).
waste_host_headers(Boost Boost::unit_test_framework boost)
