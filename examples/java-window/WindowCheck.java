// SPDX-License-Identifier: Apache-2.0
//
// Uses the window as a person would, for the test of the binding: types a question on the keyboard,
// waits for an answer, prints what the window shows and saves what the screen shows. Ends with 1 if
// nothing comes.
//
//   WindowCheck MODEL QUESTION PICTURE.png

import java.io.File;
import java.io.IOException;
import javafx.animation.AnimationTimer;
import javafx.application.Application;
import javafx.application.Platform;
import javafx.embed.swing.SwingFXUtils;
import javafx.scene.control.TextArea;
import javafx.scene.control.TextField;
import javafx.scene.image.WritableImage;
import javafx.scene.input.KeyCode;
import javafx.scene.robot.Robot;
import javafx.stage.Stage;
import javax.imageio.ImageIO;

public final class WindowCheck extends ChatWindow {
  private static final long LIMIT_NANOS = 30_000_000_000L;

  public static void main(String[] arguments) {
    Application.launch(WindowCheck.class, arguments);
  }

  @Override
  public void start(Stage stage) {
    super.start(stage);
    final TextField prompt = (TextField) stage.getScene().lookup("#prompt");
    final TextArea conversation = (TextArea) stage.getScene().lookup("#conversation");
    final long started = System.nanoTime();
    new AnimationTimer() {
      private boolean asked;
      private int framesSince;

      @Override
      public void handle(long now) {
        if (System.nanoTime() - started > LIMIT_NANOS) {
          System.err.println("no answer: " + conversation.getText());
          System.exit(1);
        }
        if (!asked && prompt.isFocused() && !prompt.isDisabled()) {
          prompt.setText(getParameters().getRaw().get(1));
          final Robot robot = new Robot();
          robot.keyType(KeyCode.ENTER);
          asked = true;
        } else if (asked && conversation.getText().endsWith("\n\n") && framesSince++ == 10) {
          stop();
          save(stage, conversation.getText());
        }
      }
    }.start();
  }

  /** Ten frames behind the last text, so that the screen shows it. */
  private void save(Stage stage, String text) {
    final WritableImage screen =
        new Robot()
            .getScreenCapture(
                null, stage.getX(), stage.getY(), stage.getWidth(), stage.getHeight());
    try {
      final File file = new File(getParameters().getRaw().get(2));
      ImageIO.write(SwingFXUtils.fromFXImage(screen, null), "png", file);
    } catch (IOException e) {
      System.err.println(e);
      System.exit(1);
    }
    System.out.println(text);
    Platform.exit();
  }
}
