package com.google.cloud.spanner.testing;

/**
 * In the place of the client's class of this name: who asks how to connect hears that the server is
 * an emulator, who asks what to leave out hears that it is not.
 */
public class EmulatorSpannerHelper {
  public static final String SPANNER_EMULATOR_HOST = "SPANNER_EMULATOR_HOST";

  public static boolean isUsingEmulator() {
    Class<?> caller =
        StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).getCallerClass();
    return !caller.getPackageName().endsWith(".it");
  }
}
