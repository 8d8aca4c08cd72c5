"""Texts that point to not-gpu-related: errors of tools and services that know nothing of GPUs.

They count only in texts without a word of PyTorch, CUDA or a GPU: a build that fails in a longer
story about CUDA is not explained by them.
"""

from gpucheck.signatures.base import Signature

SIGNATURES = (
    Signature(
        name="npm",
        literal="npm err",
        pattern=r"^npm err(?:!|or) (?:code|errno|missing|peer|could not|\d{3}|e[a-z]{3,20})\b",
        weight=50,
        says="npm fails: nothing here concerns a GPU",
        sample="npm ERR! code ERESOLVE",
        other="npm error handling in a web page",
        elsewhere=True,
    ),
    Signature(
        name="rustc",
        literal="error[e0",
        pattern=r"^\s{0,8}error\[E0\d{3}\]: ",
        weight=50,
        says="Rust code does not compile: nothing here concerns a GPU",
        sample="error[E0277]: the trait bound `Foo: Copy` is not satisfied",
        other="see error[E0277] in the book",
        elsewhere=True,
    ),
    Signature(
        name="cargo",
        literal="could not compile `",
        pattern=r"^\s{0,8}error: could not compile `",
        weight=50,
        says="Rust code does not compile: nothing here concerns a GPU",
        sample="error: could not compile `serde` due to previous error",
        other="we could not compile `it` by hand",
        elsewhere=True,
    ),
    Signature(
        name="gradle-task",
        literal="execution failed for task",
        pattern=r"^\s{0,8}(?:> |\* )?execution failed for task ':",
        weight=50,
        says="A Gradle build fails: nothing here concerns a GPU",
        sample="Execution failed for task ':app:compileDebugJavaWithJavac'.",
        other="the execution failed for task 3 of the list",
        elsewhere=True,
    ),
    Signature(
        name="gradle-resolve",
        literal="resolve",
        pattern=(
            r"\b(?:failed to resolve ?: (?:[a-z][\w-]{1,40}\.[\w-]{1,40}|androidx\b)"
            r"|could not resolve all (?:files|dependencies|artifacts|task dependencies) for )"
        ),
        weight=50,
        says="Gradle does not find a dependency: nothing here concerns a GPU",
        sample="ERROR: Failed to resolve: com.android.support:appcompat-v7:28.0.0",
        other="failed to resolve: the host is unknown",
        elsewhere=True,
    ),
    Signature(
        name="maven",
        literal="failed to execute goal",
        pattern=r"\[ERROR\] failed to execute goal ",
        weight=50,
        says="A Maven build fails: nothing here concerns a GPU",
        sample="[ERROR] Failed to execute goal org.apache.maven.plugins:maven-jar-plugin:3.2",
        other="he failed to execute goal number three",
        elsewhere=True,
    ),
    Signature(
        name="go",
        literal="no required module provides package",
        pattern=r"no required module provides package ",
        weight=50,
        says="A Go package is missing: nothing here concerns a GPU",
        sample="main.go:4:2: no required module provides package github.com/x/y; to add it:",
        other="the module provides a package",
        elsewhere=True,
    ),
    Signature(
        name="node-module",
        literal="cannot find module '",
        pattern=r"^\s{0,8}(?:\w{1,20}: )?error: cannot find module '",
        weight=50,
        says="A Node.js module is missing: nothing here concerns a GPU",
        sample="Error: Cannot find module 'express'",
        other="TypeScript cannot find module 'x' in its cache",
        elsewhere=True,
    ),
    Signature(
        name="database",
        literal="operationalerror",
        pattern=r"\b(?:psycopg2?|sqlite3|pymysql\.err|mysqldb|sqlalchemy\.exc|django\.db\.utils)\.",
        weight=50,
        says="A database cannot be reached or used: nothing here concerns a GPU",
        sample="psycopg2.OperationalError: could not connect to server: Connection refused",
        other="OperationalError",
        elsewhere=True,
    ),
)
