// SPDX-License-Identifier: Apache-2.0
//
// The screen: what was said, a line to type in, and Stop while an answer comes.

package ai.waste.chat

import android.os.Bundle
import androidx.activity.ComponentActivity
import androidx.activity.compose.setContent
import androidx.activity.viewModels
import androidx.compose.foundation.layout.Arrangement
import androidx.compose.foundation.layout.Column
import androidx.compose.foundation.layout.Row
import androidx.compose.foundation.layout.fillMaxSize
import androidx.compose.foundation.layout.fillMaxWidth
import androidx.compose.foundation.layout.padding
import androidx.compose.foundation.layout.safeDrawingPadding
import androidx.compose.foundation.lazy.LazyColumn
import androidx.compose.foundation.lazy.items
import androidx.compose.material3.Button
import androidx.compose.material3.LinearProgressIndicator
import androidx.compose.material3.MaterialTheme
import androidx.compose.material3.OutlinedTextField
import androidx.compose.material3.Text
import androidx.compose.runtime.Composable
import androidx.compose.runtime.getValue
import androidx.compose.runtime.mutableStateOf
import androidx.compose.runtime.saveable.rememberSaveable
import androidx.compose.runtime.setValue
import androidx.compose.ui.Modifier
import androidx.compose.ui.res.stringResource
import androidx.compose.ui.text.font.FontWeight
import androidx.compose.ui.unit.dp

class MainActivity : ComponentActivity() {
    private val chat: ChatViewModel by viewModels()

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        setContent { MaterialTheme { ChatScreen(chat) } }
    }
}

@Composable
private fun ChatScreen(chat: ChatViewModel) {
    Column(
        Modifier.fillMaxSize().safeDrawingPadding().padding(8.dp),
        verticalArrangement = Arrangement.spacedBy(8.dp),
    ) {
        Text(chat.status, style = MaterialTheme.typography.labelMedium)
        chat.progress?.let { done ->
            LinearProgressIndicator(progress = { done }, modifier = Modifier.fillMaxWidth())
        }
        LazyColumn(Modifier.weight(1f), reverseLayout = true) {
            items(chat.messages.asReversed()) { message ->
                Text(
                    message.text,
                    Modifier.fillMaxWidth().padding(4.dp),
                    fontWeight = if (message.fromUser) FontWeight.Bold else FontWeight.Normal,
                )
            }
        }
        Input(chat)
    }
}

@Composable
private fun Input(chat: ChatViewModel) {
    var text by rememberSaveable { mutableStateOf("") }
    Row(horizontalArrangement = Arrangement.spacedBy(8.dp)) {
        OutlinedTextField(
            value = text,
            onValueChange = { text = it },
            modifier = Modifier.weight(1f),
            placeholder = { Text(stringResource(R.string.ask)) },
        )
        if (chat.answering) {
            Button(onClick = chat::stop) { Text(stringResource(R.string.stop)) }
        } else {
            Button(onClick = {
                chat.ask(text)
                text = ""
            }) { Text(stringResource(R.string.send)) }
        }
    }
}
