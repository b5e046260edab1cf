//! TOML files: runs for `train --config`, spaces for `tune --space`.

use super::running::Case;

const SPACES: [&str; 21] = [
    "[search",
    "[search]\ndropout = 1\n",
    "[search]\ndropout = { low = 0.9, high = 0.1 }\n",
    "[search]\ndropout = { low = nan, high = 1 }\n",
    "[search]\ndropout = { low = 0, high = inf }\n",
    "[search]\ndropout = { low = 0.1, high = 0.9, step = 0.1 }\n",
    "[search]\ndropout = []\n",
    "[search]\ndropout = [[0.1]]\n",
    "[search]\ndropout = { low = \"a\", high = \"b\" }\n",
    "[search]\nlearning_rate = { low = 0.0, high = 1.0, log = true }\n",
    "[search]\nnothing = { low = 0, high = 1 }\n",
    "[search]\nhidden = { low = -5, high = 64 }\n",
    "[search]\nhidden = { low = 1, high = 9223372036854775807 }\n",
    "[search]\nhidden = [16, 18446744073709551616]\n",
    "[fixed]\nhidden = -1\n",
    "[fixed]\ndropout = nan\n",
    "[fixed]\nhidden = \"\u{1b}\"\n",
    "[fixed]\nhidden = 8\nhidden = 16\n",
    "[\u{1b}[2J]\nhidden = 8\n",
    "hidden = 8\n",
    "\u{0}",
];

const RUNS: [&str; 26] = [
    "",
    "model",
    "model = 1\n",
    "model = \"gnc\"\n",
    "model = \"\u{1b}[2J\"\n",
    "model = \"gcn\"\nmodel = \"mlp\"\n",
    "model = \"gcn\"\n[[tower]]\nnetwork = \"gcn\"\n",
    "[[tower]]\nnetwork = \"gcn\"\nmu = 0.5\n",
    "[[tower]]\nnetwork = \"\"\n",
    "model = \"gcn\"\nseed = -1\n",
    "model = \"gcn\"\nseeds = 0\n",
    "model = \"gcn\"\nseeds = 9223372036854775807\n",
    "model = \"gcn\"\nseeds = 18446744073709551616\n",
    "model = \"gcn\"\nsplits = [99]\n",
    "model = \"gcn\"\nsplits = [18446744073709551615]\n",
    "model = \"gcn\"\nsplit = \"50/50/50\"\n",
    "model = \"gcn\"\nmetric = \"luck\"\n",
    "model = \"gcn\"\ndataset = \"no/such/file.npz\"\n",
    "model = \"gcn\"\n[hyperparameters]\nhidden = 1e300\n",
    "model = \"gcn\"\n[hyperparameters]\nhidden = 0\n",
    "model = \"gcn\"\n[hyperparameters]\ndropout = nan\n",
    "model = \"gcn\"\n[hyperparameters]\nhidden = [1]\n",
    "model = \"gcn\"\n[hyperparameters]\nhidden = 16384\nlayers = 64\n",
    "model = \"gcn\"\n[schedule]\nmax_steps = -1\n",
    "model = \"gcn\"\n[schedule]\nstop = \"\u{1b}\"\n",
    "model = \"gcn\"\n[schedule]\nmax_steps = 1e300\n",
];

pub(super) fn cases() -> Vec<Case> {
    let space = |name: String, text: Vec<u8>| {
        Case::file(name, "own.toml", text, "tune karate --model gcn --trials 1 --study new.db --space FILE")
    };
    let run = |name: String, text: Vec<u8>| {
        let graph = if String::from_utf8_lossy(&text).contains("dataset") { "" } else { "karate " };
        Case::file(name, "run.toml", text, &format!("train {graph}--config FILE --save m"))
    };
    let mut cases: Vec<Case> = Vec::new();
    cases.extend(SPACES.iter().map(|text| space(format!("space {text:?}"), text.as_bytes().to_vec())));
    cases.extend(RUNS.iter().map(|text| run(format!("run {text:?}"), text.as_bytes().to_vec())));
    for (name, text) in [
        ("deep brackets", format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes()),
        ("deep tables", format!("{}a = 1", "a.".repeat(200_000)).into_bytes()),
        ("many tables", "[[a]]\n".repeat(160_000).into_bytes()),
        ("two megabytes of comments", b"# nothing\n".repeat(200_000)),
        ("no Unicode", vec![0xff; 100]),
        ("Unicode of two bytes", "model".encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ] {
        cases.push(space(format!("space of {name}"), text.clone()));
        cases.push(run(format!("run of {name}"), text));
    }
    cases
}
