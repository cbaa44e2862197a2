// SPDX-License-Identifier: Apache-2.0
//
// The conversation, which outlives turns of the screen. The model is opened once, on the library's
// thread, and closed with the view model; an answer is a job that Stop cancels.

package ai.waste.chat

import ai.waste.Channel
import ai.waste.ChatSession
import ai.waste.ModelOptions
import ai.waste.WasteException
import ai.waste.WasteModel
import android.app.Application
import androidx.compose.runtime.getValue
import androidx.compose.runtime.mutableStateListOf
import androidx.compose.runtime.mutableStateOf
import androidx.compose.runtime.setValue
import androidx.lifecycle.AndroidViewModel
import androidx.lifecycle.viewModelScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch
import kotlinx.coroutines.runInterruptible
import java.io.File
import kotlin.concurrent.thread

data class Message(val fromUser: Boolean, val text: String)

class ChatViewModel(application: Application) : AndroidViewModel(application) {
    val messages = mutableStateListOf<Message>()
    var status by mutableStateOf("")
        private set
    var progress by mutableStateOf<Float?>(0f)
        private set
    var answering by mutableStateOf(false)
        private set

    private var model: WasteModel? = null
    private var chat: ChatSession? = null
    private var answer: Job? = null

    init {
        viewModelScope.launch { open() }
    }

    private suspend fun open() {
        val folder = File(getApplication<Application>().getExternalFilesDir(null), "model.waste")
        try {
            val options = ModelOptions.builder().contextTokens(4096).build()
            val opened = runInterruptible(wasteDispatcher) {
                WasteModel.open(folder.toPath(), options) { progress = it.fraction().toFloat() }
            }
            model = opened
            chat = runInterruptible(wasteDispatcher) { opened.newChat() }
            status = opened.info().name()
        } catch (e: WasteException) {
            status = e.message.orEmpty()
        }
        progress = null
    }

    fun ask(prompt: String) {
        val session = chat ?: return
        if (answering || prompt.isBlank()) return
        messages += Message(true, prompt)
        messages += Message(false, "")
        answering = true
        answer = viewModelScope.launch {
            try {
                session.flow(prompt).collect { piece ->
                    if (piece.channel() == Channel.RESPONSE) append(piece.text())
                }
            } catch (e: WasteException) {
                status = e.message.orEmpty()
            } finally {
                answering = false
            }
        }
    }

    private fun append(text: String) {
        val last = messages.last()
        messages[messages.lastIndex] = last.copy(text = last.text + text)
    }

    fun stop() {
        answer?.cancel()
    }

    /** Closing waits up to a second for an answer to stop: not on the main thread. */
    override fun onCleared() {
        val closing = model ?: return
        thread { closing.close() }
    }
}
