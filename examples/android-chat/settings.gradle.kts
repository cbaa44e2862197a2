// SPDX-License-Identifier: Apache-2.0
//
// One module: the app, with the Java layer of this repository as sources.
pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}
dependencyResolutionManagement {
    repositories {
        google()
        mavenCentral()
    }
}
rootProject.name = "waste-chat"
include(":app")
