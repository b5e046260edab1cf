#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| qdc_data::fuzzing::kernel(bytes));
