/**
 * What the lifecycle tests start, but for its workers (`porticoWorkerEntry.ts`): `serve FILE`, `check FILE`, and ways to
 * go wrong. As in the product, each loads only what it needs: most of what these tests cost are starts of processes.
 */
const [, , command, file = ""] = process.argv;

if (command === "check") {
  void Promise.all([
    import("../src/runtime/load/loadConfig.js"),
    import("../src/model/text/problem.js"),
  ]).then(async ([{ loadConfig }, { formatProblem }]) => {
    const result = await loadConfig({ file });
    const problems = result.ok ? result.value.warnings : result.problems;
    process.stdout.write(problems.map((p) => `${formatProblem(p)}\n`).join(""));
  });
} else {
  void import("../src/runtime/supervisor/serve.js").then(({ serve }) => {
    // The natural end of the process shows that nothing is left that would hold it.
    void serve({ file }).then((code) => {
      process.exitCode = code;
    });
    if (process.env["TEST_STOP_AT_START"] !== undefined) process.kill(process.pid, "SIGTERM");
  });
}
