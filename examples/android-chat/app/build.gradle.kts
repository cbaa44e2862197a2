// SPDX-License-Identifier: Apache-2.0
//
// The app. It compiles the Java layer from ../../../bindings/java, without its module-info, which
// Android does not know. The native library comes from src/main/jniLibs (README.md says how).
plugins {
    id("com.android.application")
    id("org.jetbrains.kotlin.android")
    id("org.jetbrains.kotlin.plugin.compose")
}

val binding = rootDir.resolve("../../bindings/java")

android {
    namespace = "ai.waste.chat"
    compileSdk = 35

    defaultConfig {
        applicationId = "ai.waste.chat"
        minSdk = 24
        targetSdk = 35
        versionCode = 1
        versionName = "0.1.0"
        ndk { abiFilters += listOf("arm64-v8a", "x86_64") } // 64-bit only: the models are large
    }
    buildTypes {
        release {
            isMinifyEnabled = true
            proguardFiles(
                getDefaultProguardFile("proguard-android-optimize.txt"),
                binding.resolve("consumer-rules.pro"),
            )
        }
    }
    sourceSets["main"].java.srcDirs(
        binding.resolve("src/main/java"),
        binding.resolve("src/generated/java"),
    )
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
        isCoreLibraryDesugaringEnabled = true // java.nio.file and java.time before API 26
    }
    kotlinOptions { jvmTarget = "11" }
    buildFeatures { compose = true }
    // Uncompressed and aligned in the APK, so that the loader maps it where pages have 16 KiB.
    packaging { jniLibs { useLegacyPackaging = false } }
}

tasks.withType<JavaCompile>().configureEach { exclude("**/module-info.java") }

dependencies {
    coreLibraryDesugaring("com.android.tools:desugar_jdk_libs_nio:2.1.3")
    implementation(platform("androidx.compose:compose-bom:2024.12.01"))
    implementation("androidx.compose.material3:material3")
    implementation("androidx.activity:activity-compose:1.9.3")
    implementation("androidx.lifecycle:lifecycle-viewmodel-compose:2.8.7")
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.9.0")
}
