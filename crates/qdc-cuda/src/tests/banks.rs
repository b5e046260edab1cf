//! Banks and windows to be compared with the CPU.

use qdc_core::bank::{Channel, Channels, On, View};
use qdc_core::{EdgeRule, Filter, Graph, Resources, Watch};
use qdc_nn::bank::{BankArchitecture, BankInputs, LearnedWindow, Readout, Way};

use super::{CLASSES, NODES, Subject, features};

fn graph() -> Graph {
    let nodes = NODES as u64;
    let edges = (0..nodes).flat_map(|i| [(i, (i + 1) % nodes), (i, (i * 5 + 2) % nodes), (i, i * i % nodes)]);
    Graph::from_edges(NODES, edges.filter(|(i, j)| i != j), EdgeRule::Undirected).unwrap()
}

/// Every kind of channel over sparse or dense features.
fn channels(dense: bool) -> Channels {
    let gaussian = |mu, sigma| View::Filter(Filter::gaussian(mu, sigma).unwrap());
    let list = [
        Channel::new(View::Features),
        Channel::new(View::Step),
        Channel::new(gaussian(1.0, 0.25)),
        Channel::new(gaussian(-0.6, 0.5)),
        Channel::new(View::Rank { window: 1, of: 3 }),
        Channel::new(View::Rows),
        Channel::new(View::Statistics),
        Channel { on: On::Nearest(3), view: gaussian(1.0, 0.5) },
    ];
    Channels::new(&list, &graph(), features(dense), &Resources::default(), &Watch::silent()).unwrap()
}

/// Banks of every kind; a learned window from two starts is the last.
pub(super) fn banks() -> Vec<(&'static str, Subject)> {
    let bank = |norm, readout, input_dropout, hidden| BankArchitecture {
        hidden,
        norm,
        readout,
        dropout: 0.4,
        input_dropout,
        readout_decay: 1e-3,
        classes: CLASSES,
    };
    let over = |dense, way| vec![BankInputs::new(&channels(dense), way, &Watch::silent()).unwrap()];
    let from = |start| BankInputs::window(&graph(), &features(false), start).unwrap();
    let starts = || {
        let slow = LearnedWindow::new(0.7, 0.2).at_rate(0.05);
        vec![from(LearnedWindow::new(0.5, 0.5)), from(slow)]
    };
    let (linear, layers) = (Readout::Linear, Readout::Layers);
    vec![
        ("bank, mapped", Subject::Bank(bank(true, linear, 0.0, 20), over(false, Way::Mapped))),
        ("bank, kept", Subject::Bank(bank(true, linear, 0.0, 64), over(false, Way::Kept))),
        ("bank, kept and dropped", Subject::Bank(bank(true, layers, 0.3, 20), over(false, Way::Kept))),
        ("bank, mapped and dropped", Subject::Bank(bank(true, layers, 0.3, 16), over(false, Way::Mapped))),
        ("bank without norm", Subject::Bank(bank(false, layers, 0.0, 12), over(true, Way::default()))),
        ("bank on dense features", Subject::Bank(bank(true, linear, 0.5, 12), over(true, Way::Mapped))),
        (
            "bank wider than its features",
            Subject::Bank(bank(true, linear, 0.3, 72), over(false, Way::Mapped)),
        ),
        (
            "bank wider than dense features",
            Subject::Bank(bank(true, linear, 0.5, 32), over(true, Way::Mapped)),
        ),
        ("window that drops inputs", Subject::Bank(bank(true, linear, 0.3, 12), starts())),
        ("window", Subject::Bank(bank(true, linear, 0.0, 16), starts())),
    ]
}
