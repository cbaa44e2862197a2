// SPDX-License-Identifier: Apache-2.0
//
// Enums whose order is that of the C API's numbers, compared with those, and a field that no test
// can make the library fill; in this package because the numbers and structs are not public.

package ai.waste;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class ConstantsTest {
  @Test
  void enums_are_the_numbers_of_the_c_api() {
    assertArrayEquals(
        new int[] {
          WasteNativeConstants.WASTE_IO_AUTO,
          WasteNativeConstants.WASTE_IO_DIRECT,
          WasteNativeConstants.WASTE_IO_BUFFERED
        },
        ordinals(ModelOptions.Io.values()));
    assertArrayEquals(
        new int[] {
          WasteNativeConstants.WASTE_ARITHMETIC_FAST, WasteNativeConstants.WASTE_ARITHMETIC_EXACT
        },
        ordinals(ModelOptions.Arithmetic.values()));
    assertArrayEquals(
        new int[] {
          WasteNativeConstants.WASTE_ISA_BEST,
          WasteNativeConstants.WASTE_ISA_SCALAR,
          WasteNativeConstants.WASTE_ISA_AVX2,
          WasteNativeConstants.WASTE_ISA_AVX512,
          WasteNativeConstants.WASTE_ISA_NEON,
          WasteNativeConstants.WASTE_ISA_AVX512_VBMI
        },
        ordinals(ModelOptions.InstructionSet.values()));
  }

  @Test
  void every_status_has_its_name() throws ReflectiveOperationException {
    assertEquals(12, Status.values().length);
    for (Status status : Status.values()) {
      final int code = WasteNativeConstants.class.getField("WASTE_ERR_" + status).getInt(null);
      assertEquals(code, status.code);
      assertEquals(status, Status.of(code));
    }
  }

  @Test
  void what_other_models_reserve_is_read_from_its_field() {
    final waste_memory_plan plan = new waste_memory_plan();
    plan.setUsable_bytes(5);
    plan.setBudget_bytes(6);
    plan.setReserved_bytes(7);
    assertEquals(7, new MemoryPlan(plan).reservedBytes());
    plan.delete();
  }

  private static int[] ordinals(Enum<?>[] values) {
    return Arrays.stream(values).mapToInt(Enum::ordinal).toArray();
  }
}
