//! Times loading a dataset: `cargo run --release -p qdc-data --example load -- FOLDER NAME [REPEATS]`.

#![allow(clippy::print_stdout)] // an example prints

use std::time::Instant;

use qdc_data::DataDir;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, name, rest @ ..] = &arguments[..] else {
        return Err("expected FOLDER NAME [REPEATS]".into());
    };
    let repeats: usize = rest.first().map_or(Ok(10), |text| text.parse())?;
    let mut seconds = Vec::new();
    for _ in 0..repeats {
        let start = Instant::now();
        let dataset = DataDir::new(folder).load(name)?;
        seconds.push(start.elapsed().as_secs_f64());
        drop(dataset);
    }
    seconds.sort_by(f64::total_cmp);
    println!(
        "{name} from {folder}: least {:.4} s, median {:.4} s of {repeats}",
        seconds[0],
        seconds[repeats / 2]
    );
    Ok(())
}
