// SPDX-License-Identifier: Apache-2.0
//
// A chat in a window of JavaFX. The model is opened on a thread of its own with a progress bar;
// answers come on another one (generateAsync) and are shown a frame at a time; Stop cancels.

import ai.waste.ChatSession;
import ai.waste.Completion;
import ai.waste.Generation;
import ai.waste.GenerationOptions;
import ai.waste.ModelOptions;
import ai.waste.Piece;
import ai.waste.StreamHandler;
import ai.waste.WasteException;
import ai.waste.WasteModel;
import java.nio.file.Path;
import javafx.application.Application;
import javafx.application.Platform;
import javafx.geometry.Insets;
import javafx.scene.Scene;
import javafx.scene.control.Button;
import javafx.scene.control.Label;
import javafx.scene.control.ProgressBar;
import javafx.scene.control.TextArea;
import javafx.scene.control.TextField;
import javafx.scene.layout.BorderPane;
import javafx.scene.layout.HBox;
import javafx.scene.layout.Priority;
import javafx.stage.Stage;

public class ChatWindow extends Application {
  private final TextArea conversation = new TextArea();
  private final TextField prompt = new TextField();
  private final Button send = new Button("Send");
  private final Button stop = new Button("Stop");
  private final ProgressBar progress = new ProgressBar(0);
  private final Label status = new Label("Opening the model");
  private volatile boolean closing;
  private WasteModel model;
  private ChatSession chat;
  private Generation answer;

  public static void main(String[] arguments) {
    launch(ChatWindow.class, arguments);
  }

  @Override
  public void start(Stage stage) {
    conversation.setId("conversation");
    conversation.setEditable(false);
    conversation.setWrapText(true);
    conversation.setFocusTraversable(false);
    prompt.setId("prompt");
    prompt.setPromptText("Say something");
    prompt.setOnAction(event -> ask());
    send.setId("send");
    send.setDefaultButton(true);
    send.setOnAction(event -> ask());
    stop.setOnAction(event -> answer.cancel());
    setReady(false);
    stop.setDisable(true);

    HBox.setHgrow(prompt, Priority.ALWAYS);
    final HBox input = new HBox(8, prompt, send, stop);
    final HBox line = new HBox(8, progress, status);
    final BorderPane pane = new BorderPane(conversation, null, null, null, null);
    pane.setTop(line);
    pane.setBottom(input);
    for (HBox box : new HBox[] {line, input}) box.setPadding(new Insets(8));
    stage.setTitle("WASTE");
    stage.setScene(new Scene(pane, 640, 420));
    stage.show();
    open(Path.of(getParameters().getRaw().get(0)));
  }

  private void open(Path path) {
    final Thread opener = new Thread(() -> openHere(path), "open");
    opener.setDaemon(true);
    opener.start();
  }

  private void openHere(Path path) {
    try {
      final WasteModel opened =
          WasteModel.open(
              path,
              ModelOptions.defaults(),
              now -> {
                if (closing) throw new IllegalStateException("the window was closed");
                Platform.runLater(() -> progress.setProgress(now.fraction()));
              });
      Platform.runLater(() -> opened(opened));
    } catch (RuntimeException e) {
      Platform.runLater(() -> status.setText(e.getMessage()));
    }
  }

  private void opened(WasteModel opened) {
    model = opened;
    chat = model.newChat();
    status.setText(model.info().name());
    progress.setVisible(false);
    progress.setManaged(false);
    setReady(true);
  }

  private void setReady(boolean ready) {
    prompt.setDisable(!ready);
    send.setDisable(!ready);
    if (ready) prompt.requestFocus();
  }

  private void ask() {
    final String text = prompt.getText();
    if (text.isBlank() || chat == null) return;
    prompt.clear();
    setReady(false);
    conversation.appendText("You: " + text + "\n");
    try {
      answer = chat.generateAsync(text, GenerationOptions.defaults(), null, new Shown());
      stop.setDisable(false);
    } catch (WasteException e) {
      ended(e.getMessage());
    }
  }

  private void ended(String how) {
    conversation.appendText("\n\n");
    status.setText(how);
    stop.setDisable(true);
    setReady(true);
  }

  /** Pieces come faster than frames: they are gathered, and one runLater takes all there are. */
  private final class Shown implements StreamHandler {
    private final StringBuilder waiting = new StringBuilder();

    @Override
    public void onPiece(Piece piece) {
      synchronized (waiting) {
        final boolean asked = waiting.length() > 0;
        waiting.append(piece.text());
        if (asked) return;
      }
      Platform.runLater(this::show);
    }

    private void show() {
      synchronized (waiting) {
        conversation.appendText(waiting.toString());
        waiting.setLength(0);
      }
    }

    @Override
    public void onComplete(Completion completion) {
      final double speed = completion.timings().tokensPerSecond();
      Platform.runLater(() -> ended(String.format("%.0f tokens/s", speed)));
    }

    @Override
    public void onError(WasteException error) {
      Platform.runLater(() -> ended(error.getMessage()));
    }
  }

  /** Closing the model cancels what runs and takes at most a second. */
  @Override
  public void stop() {
    closing = true;
    if (model != null) model.close();
  }
}
