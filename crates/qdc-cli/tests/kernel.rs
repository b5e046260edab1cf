//! `qdc kernel` and `qdc merge` as a user runs them.

mod support;

use support::{json, qdc, refused};

#[test]
fn the_report_has_the_keys_scripts_rely_on() {
    let folder = tempfile::tempdir().unwrap();
    let report = json(folder.path(), "kernel karate --mu 0.3 --sigma 0.1 --top-k 8 -o q.npz");
    let keys = "nodes entries density filter parameters pairs solver degree error_bound residual_max captured_mass \
                empty_rows seconds peak_memory_bytes output";
    for key in keys.split_whitespace() {
        assert!(report.get(key).is_some(), "{key}");
    }
    assert_eq!((&report["nodes"], &report["pairs"]), (&34.into(), &"all".into()));
    assert!(report["error_bound"].as_f64().unwrap() <= 1e-10);
    assert!(folder.path().join("q.npz").is_file());
}

#[test]
fn shards_merge_into_the_file_built_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for rule in ["--top-k 5", "--epsilon 0.01 --sign absolute", "--epsilon 0.001 --normalize row"] {
        let options = format!("kernel karate --mu 0.3 --sigma 0.2 {rule}");
        json(folder.path(), &format!("{options} -o whole.mtx"));
        json(folder.path(), &format!("{options} --rows 20:34 -o b.npz"));
        json(folder.path(), &format!("{options} --rows 0:20 -o a.npz"));
        json(folder.path(), "merge b.npz a.npz -o merged.mtx");
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert_eq!(read("whole.mtx"), read("merged.mtx"), "{rule}");
    }
    refused(folder.path(), "merge a.npz -o merged.mtx", 1, "row 20 is in none of the shards");
    std::fs::remove_file(folder.path().join("a.npz.json")).unwrap();
    refused(folder.path(), "merge a.npz b.npz -o merged.mtx", 1, "manifest");
}

#[test]
fn the_local_route_states_both_errors_and_its_shards_merge() {
    let folder = tempfile::tempdir().unwrap();
    let options = "kernel powerlaw:n=600,degree=8,seed=1 --mu 0.3 --sigma 0.5 --top-k 8 --accuracy 1e-3";
    let report = json(folder.path(), &format!("{options} --solver local -o whole.mtx"));
    assert_eq!(report["solver"], "local");
    assert!(report["error_estimate"].as_f64().unwrap() <= 1e-3);
    assert!(report["error_bound"].as_f64().unwrap() > 0.0);
    let how = report["error_estimate_how"].as_str().unwrap();
    assert!(how.starts_with("measured on what 64 rows keep, computed exactly; they keep "), "{how}");
    json(folder.path(), &format!("{options} --solver local --rows 0:77 -o a.npz"));
    json(folder.path(), &format!("{options} --solver local --rows 77:600 -o b.npz"));
    let merged = json(folder.path(), "merge b.npz a.npz -o merged.mtx");
    assert_eq!(merged["error_bound"], report["error_bound"]);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("whole.mtx"), read("merged.mtx"));
    // On so few vertices the exact route is as fast, and is taken.
    assert_ne!(json(folder.path(), "kernel karate --accuracy 1e-3 -o q.npz")["solver"], "local");
}

#[test]
fn processes_that_share_the_rows_make_the_kernel_of_one() {
    // What docs/guides/cluster.md does with a Slurm array.
    let folder = tempfile::tempdir().unwrap();
    let options = "kernel powerlaw:n=900,degree=6,seed=2 --sigma 0.5 --top-k 8 --accuracy 1e-3";
    json(folder.path(), &format!("{options} -o whole.npz"));
    let ranges = ["0:300", "300:600", "600:900"];
    let jobs = ranges.map(|rows| {
        let arguments = format!("{options} --rows {rows} -o part-{}.npz --quiet", rows.replace(':', "-"));
        support::command(folder.path(), &arguments).spawn().expect("the program runs")
    });
    for mut job in jobs {
        assert!(job.wait().unwrap().success());
    }
    json(folder.path(), "merge part-600-900.npz part-0-300.npz part-300-600.npz -o merged.npz");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("whole.npz") == read("merged.npz"));
}

#[test]
fn a_kernel_is_continued_from_its_finished_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let options = "kernel powerlaw:n=1200,degree=6,seed=1 --mu 0.3 --sigma 0.5 --top-k 8";
    let whole = json(folder.path(), &format!("{options} -o whole.npz"));
    let parts = json(folder.path(), &format!("{options} --resume parts -o first.npz"));
    assert_eq!((&whole["entries"], &whole["error_bound"]), (&parts["entries"], &parts["error_bound"]));
    let part = |name: &str| folder.path().join("parts").join(name);
    let modified = |name: &str| std::fs::metadata(part(name)).unwrap().modified().unwrap();
    let (kept, lost) = ("rows-0000000256-0000000512.npz", "rows-0000001024-0000001200.npz");
    let before = modified(kept);
    // A range without its manifest was being written when the program ended.
    std::fs::remove_file(part(&format!("{lost}.json"))).unwrap();
    std::fs::write(part(lost), "half").unwrap();
    json(folder.path(), &format!("{options} --resume parts -o second.npz"));
    assert_eq!(modified(kept), before);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("whole.npz") == read("first.npz") && read("whole.npz") == read("second.npz"));
    let other = "kernel powerlaw:n=1200,degree=6,seed=1 --mu 0.4 --top-k 8 --resume parts -o q.npz";
    refused(folder.path(), other, 1, "is of another kernel");
    refused(
        folder.path(),
        &format!("{options} --resume parts --rows 0:9 -o q.npz"),
        2,
        "cannot be used with",
    );
}

#[test]
fn a_kernel_killed_on_the_way_is_continued_to_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let graph = "kernel powerlaw:n=6000,degree=6,seed=3";
    let kernels = [
        ("heat", "--filter heat --time 2 --top-k 8 --solver local --accuracy 1e-3"),
        ("band", "--filter band --mu 0.2 --gamma 0.1 --epsilon 0.01 --solver chebyshev"),
    ];
    for (name, kernel) in kernels {
        json(folder, &format!("{graph} {kernel} -o whole.npz"));
        let resume = format!("{graph} {kernel} --resume {name} -o resumed.npz");
        let finished = || {
            let files = std::fs::read_dir(folder.join(name)).into_iter().flatten().flatten();
            let manifests = files.filter(|file| file.path().extension().is_some_and(|end| end == "json"));
            manifests
                .map(|file| (file.path(), file.metadata().unwrap().modified().unwrap()))
                .collect::<Vec<_>>()
        };
        let mut killed = support::command(folder, &format!("{resume} --quiet")).spawn().unwrap();
        while finished().is_empty() {
            assert!(killed.try_wait().unwrap().is_none(), "it ended before a range was seen");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        let before = finished();
        assert!(before.len() < 24 && !folder.join("resumed.npz").exists(), "it was killed too late");
        json(folder, &resume);
        let after = finished();
        assert_eq!(after.len(), 24);
        assert!(before.iter().all(|file| after.contains(file)), "a finished range was made again");
        let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
        assert!(read("whole.npz") == read("resumed.npz"), "{name}");
        std::fs::remove_file(folder.join("resumed.npz")).unwrap();
    }
}

#[test]
fn ranges_of_another_route_are_refused_before_the_rest_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let options = "kernel powerlaw:n=600,degree=6,seed=1 --filter ppr --top-k 8 --resume parts";
    json(folder.path(), &format!("{options} --solver chebyshev -o first.npz"));
    let lost = folder.path().join("parts/rows-0000000512-0000000600.npz.json");
    std::fs::remove_file(&lost).unwrap();
    let other = format!("{options} --solver elimination -o second.npz");
    refused(folder.path(), &other, 1, "was made by chebyshev, and the rest would be made by elimination");
    assert!(!lost.exists());
}

#[test]
fn bad_input_is_refused_with_what_is_wrong_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("kernel karate --sigma 0 -o q.npz", 2, "sigma = 0 is out of range"),
        ("kernel karate --sigma=-0.1 -o q.npz", 2, "sigma = -0.1 is out of range"),
        ("kernel karate --sigma nan -o q.npz", 2, "sigma = NaN is out of range"),
        ("kernel karate --mu nan -o q.npz", 2, "mu = NaN is out of range"),
        ("kernel karate --mu inf -o q.npz", 2, "mu = inf is out of range"),
        ("kernel karate --epsilon nan -o q.npz", 2, "epsilon = NaN is out of range"),
        ("kernel karate --tolerance nan -o q.npz", 2, "tolerance = NaN is out of range"),
        ("kernel karate --self-loop nan -o q.npz", 2, "self_loop = NaN is out of range"),
        ("kernel karate --filter ppr --alpha 0 -o q.npz", 2, "alpha = 0 is out of range"),
        ("kernel karate --filter heat --time=-1 -o q.npz", 2, "time = -1 is out of range"),
        ("kernel karate --top-k 0 -o q.npz", 2, "top_k = 0 is out of range"),
        ("kernel karate --alpha 0.2 -o q.npz", 2, "--alpha does not belong to --filter gaussian"),
        ("kernel karate --epsilon 0.1 --top-k 5 -o q.npz", 2, "cannot be used with"),
        ("kernel karate --pairs 0 -o q.npz", 2, "not a number of pairs"),
        ("kernel karate -o q.docx", 2, "q.docx"),
        ("kernel karate -o missing/q.npz", 1, "there is no folder missing"),
        ("kernel karate --rows 30:40 -o q.npz", 2, "30:40"),
        ("kernel karate --rows 0:4 -o q.csv", 2, "a row range is written to a .npz file"),
        ("kernel karate --sparsify none --memory 1kB -o q.npz", 1, "are left for it"),
        ("kernel karate --accuracy 0 -o q.npz", 2, "accuracy = 0 is out of range"),
        ("kernel karate --accuracy 1e-3 --tolerance 1e-3 -o q.npz", 2, "cannot be used with"),
        ("kernel karate --solver local -o q.npz", 2, "give --accuracy"),
        ("kernel karate --solver local --accuracy 1e-9 -o q.npz", 1, "single precision"),
        ("kernel karate --pairs 5 --solver chebyshev -o q.npz", 2, "without computing eigenpairs"),
    ];
    for (arguments, status, message) in cases {
        refused(folder.path(), arguments, status, message);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_with_a_remedy_and_leaves_no_file() {
    use std::process::Command;
    let folder = tempfile::tempdir().unwrap();
    // A device on which every write fails for want of space, under a name with a known format
    let full = folder.path().join("full.mtx");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    refused(folder.path(), "kernel karate -o full.mtx", 1, "full.mtx");
    refused(folder.path(), "kernel karate -o full.mtx", 1, "disk is full");
    std::fs::remove_file(full).unwrap();
    // A limit on the size of files, reached half way; the shell ignores the signal that comes with it.
    let program = env!("CARGO_BIN_EXE_qdc");
    for options in ["-o q.csv", "-o q.npz", "--rows 0:200 -o q.npz"] {
        let command = format!(
            "trap '' XFSZ; ulimit -f 8; exec '{program}' kernel er:n=200,p=0.1,seed=1 --sparsify none {options}"
        );
        let output = Command::new("sh").args(["-c", &command]).current_dir(folder.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{options}: {stderr}");
        assert!(stderr.contains("cannot write"), "{options}: {stderr}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{options}");
    }
}

#[test]
#[cfg(unix)]
fn an_interrupted_kernel_leaves_no_file() {
    use std::io::{BufRead, BufReader};
    use std::process::Command;
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_qdc"))
        .args("kernel er:n=9000,p=0.001,seed=1 --sigma 0.1 --solver chebyshev -o q.npz".split_whitespace())
        .current_dir(folder.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The plan is told right before the work begins, which takes long.
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("plan:") {
        line.clear();
        assert!(talk.read_line(&mut line).unwrap() > 0, "it ended before it told its plan");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut talk, &mut rest).unwrap();
    assert!(rest.contains("interrupted; nothing was written"), "{rest}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_stored_spectrum_serves_every_kernel_of_its_graph() {
    let folder = tempfile::tempdir().unwrap();
    let graph = "er:n=520,p=0.01,seed=3";
    let dense = json(folder.path(), &format!("kernel {graph} --solver dense --cache-dir . -o dense.mtx"));
    assert_eq!((&dense["solver"], &dense["pairs"]), (&"dense".into(), &"all".into()));
    assert_eq!(std::fs::read_dir(folder.path().join("spectra")).unwrap().count(), 1, "computed once, stored");
    let window = format!("kernel {graph} --pairs 40 --mu 0.2 --top-k 8 --cache-dir .");
    let stored = json(folder.path(), &format!("{window} -o stored.mtx"));
    assert!(stored["reason"].as_str().unwrap().contains("stored spectrum"), "{}", stored["reason"]);
    for rows in ["0:100", "100:520"] {
        json(folder.path(), &format!("{window} --rows {rows} -o {}.npz", &rows[..1]));
    }
    json(folder.path(), "merge 0.npz 1.npz -o merged.mtx");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("merged.mtx"), read("stored.mtx"));
}

#[test]
fn what_is_probably_not_meant_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let output = qdc(folder.path(), "kernel karate --mu 3 --sigma 2 --epsilon 50 -o q.npz");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("warning: mu = 3 lies outside [-2, 2]"), "{stderr}");
    assert!(stderr.contains("keeps nothing") && stderr.contains("would keep one percent"), "{stderr}");
    let output = qdc(folder.path(), "kernel karate --pairs 99 --top-k 70 -o q.npz");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("top-k 70 was lowered to the 34 vertices there are"), "{stderr}");
    assert!(stderr.contains("99 pairs were lowered to the 34 there are"), "{stderr}");
}
