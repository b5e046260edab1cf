//! What can be typed: generators beyond any memory, numbers out of range, places that cannot be written.

use super::running::Case;

pub(super) fn cases() -> Vec<Case> {
    let graphs = [
        "er:n=1000000000,p=0",
        "er:n=4294967295,p=0",
        "er:n=18446744073709551615,p=1",
        "er:n=1000000,p=1",
        "er:n=100,p=nan",
        "er:n=-1,p=0.5",
        "er:n=1e3",
        "cycle:2",
        "cycle:4000000000",
        "cycle:99999999999999999999",
        "grid:100000x100000",
        "grid:0x5",
        "grid:4294967296x4294967296",
        "barbell:100000,1",
        "barbell:0,0",
        "barbell:1,4000000000",
        "sbm:n=4000000000",
        "sbm:n=1000000,p_in=1,p_out=1",
        "sbm:n=10,blocks=0",
        "csbm:n=1000000,features=1000000",
        "csbm:n=10,classes=11",
        "csbm:n=10,homophily=2",
        "csbm:n=1000000000",
        "powerlaw:n=4000000000",
        "powerlaw:n=1000000,degree=1000000",
        "powerlaw:n=100,degree=inf",
        "karate:1",
        "er:",
        "er:n=,p=",
        "er:x=1",
    ];
    let mut cases: Vec<Case> = graphs
        .iter()
        .filter(|graph| **graph != "er:")
        .map(|graph| Case::words(format!("homophily {graph} --spectral")))
        .collect();
    for words in [
        "kernel",
        "kernel karate",
        "kernel karate -o no/such/folder/q.npz",
        "kernel karate -o q.exe",
        "kernel karate -o /proc/q.npz",
        "kernel karate --sigma nan -o q.npz",
        "kernel karate --sigma=-1 -o q.npz",
        "kernel karate --mu inf -o q.npz",
        "kernel karate --pairs=-5 -o q.npz",
        "kernel karate --rows 5 -o q.npz",
        "kernel karate --rows 0:99999999999999999999 -o q.npz",
        "spectrum karate --pairs 0",
        "spectrum karate -o s.csv",
        "dynamics karate --equation heat --from 0 --times=-1",
        "dynamics karate --equation heat --from 99999999999 --times 1",
        "train karate --model gcn --set hidden=99999999999999",
        "train karate --model gcn --set layers=-1",
        "train karate --model gcn --splits 99",
        "train karate --model gcn --save no/such/folder/m",
        "train karate --model gcn --curves no/such/folder/c.csv",
        "tune karate --model gcn --space no.toml",
        "tune karate --model gcn --budget never",
        "figure barbell -o no/such/folder/f.svg",
        "figure barbell -o f.exe",
        "report karate -o no/such/folder/r.html",
        "report karate -o r.exe",
        "data get nothing",
        "data show nothing",
        "merge",
        "predict",
        "table nowhere.db",
        "homophily karate --threads 0",
        "homophily karate --memory 0",
    ] {
        cases.push(Case::words(words));
    }
    cases
}
