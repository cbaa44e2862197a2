// SPDX-License-Identifier: Apache-2.0
//
// Answers as flows. A piece is pulled when the collector wants one (no buffer, so nothing runs
// ahead and the session holds what was collected). Cancelling the collector interrupts the thread
// inside the library, which cancels the answer.

package ai.waste.chat

import ai.waste.ChatSession
import ai.waste.GenerationOptions
import ai.waste.Piece
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.buffer
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.runInterruptible
import java.util.concurrent.Executors

/** A thread for the library alone: a blocked answer must not take one of the shared dispatchers. */
val wasteDispatcher: CoroutineDispatcher =
    Executors.newSingleThreadExecutor { Thread(it, "waste").apply { isDaemon = true } }
        .asCoroutineDispatcher()

fun ChatSession.flow(
    prompt: String,
    options: GenerationOptions = GenerationOptions.defaults(),
): Flow<Piece> = flow {
    stream(prompt, options).use { stream ->
        val pieces = stream.iterator()
        while (runInterruptible { pieces.hasNext() }) emit(pieces.next())
    }
}.buffer(Channel.RENDEZVOUS).flowOn(wasteDispatcher)
