package com.google.cloud.spanner.testing;

import java.util.Set;

/**
 * In the place of the client's class of this name: who asks how to connect hears that the server is
 * an emulator, who asks what to leave out hears that it is not.
 */
public class EmulatorSpannerHelper {
  public static final String SPANNER_EMULATOR_HOST = "SPANNER_EMULATOR_HOST";

  private static final String TESTS = ".it";
  private static final String JDBC_TESTS = "com.google.cloud.spanner.jdbc.it";

  /** Those of JDBC connect by themselves: these ask what to leave out. */
  private static final Set<String> LEAVE_OUT =
      Set.of(
          "ITAbstractJdbcTest",
          "ITJdbcDatabaseMetaDataTest",
          "ITJdbcPgDatabaseMetaDataTest",
          "ITJdbcQueryOptionsTest",
          "ITJdbcScriptTest");

  public static boolean isUsingEmulator() {
    Class<?> caller =
        StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).getCallerClass();
    String place = caller.getPackageName();
    boolean leavesOut =
        place.equals(JDBC_TESTS)
            ? LEAVE_OUT.contains(caller.getSimpleName())
            : place.endsWith(TESTS);
    return !leavesOut;
  }
}
