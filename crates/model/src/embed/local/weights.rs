//! Reads tensors of a safetensors file by name and checks their shapes.

use ndarray::{Array1, Array2};
use safetensors::{Dtype, SafeTensors};

/// The tensors of a safetensors file.
pub(super) struct Weights<'a> {
    tensors: SafeTensors<'a>,
    /// The prefix of all tensor names, which models that were extracted from a larger one have.
    prefix: &'static str,
}

impl<'a> Weights<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let prefixed = tensors.names().iter().any(|name| name.starts_with("bert.encoder."));
        Ok(Self { tensors, prefix: if prefixed { "bert." } else { "" } })
    }

    pub(super) fn matrix(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Array2<f32>, String> {
        let numbers = self.read_numbers(name, &[rows, columns])?;
        Array2::from_shape_vec((rows, columns), numbers).map_err(|error| error.to_string())
    }

    pub(super) fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, String> {
        self.read_numbers(name, &[length]).map(Array1::from_vec)
    }

    fn read_numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let name = format!("{}{name}", self.prefix);
        let tensor = self.tensors.tensor(&name).map_err(|error| error.to_string())?;
        if tensor.shape() != shape {
            return Err(format!("{name} has the shape {:?}, not {shape:?}", tensor.shape()));
        }
        let bytes = tensor.data();
        match tensor.dtype() {
            Dtype::F32 => {
                Ok(bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect())
            }
            Dtype::F16 => Ok(decode_halves(bytes, half_to_f32)),
            Dtype::BF16 => Ok(decode_halves(bytes, |bits| f32::from_bits(u32::from(bits) << 16))),
            other => Err(format!("{name} holds {other:?}; supported are F32, F16 and BF16")),
        }
    }
}

fn decode_halves(bytes: &[u8], convert: impl Fn(u16) -> f32) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|pair| convert(u16::from_le_bytes(*pair))).collect()
}

/// Converts a half-precision number.
fn half_to_f32(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2_f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction) * 2_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::half_to_f32;

    #[test]
    fn half_precision_floats_are_converted() {
        let known =
            [(0x3c00, 1.0), (0xc000, -2.0), (0x3555, 0.333_251_95), (0x0001, 5.960_464_5e-8)];
        for (bits, value) in known {
            assert_eq!(half_to_f32(bits).to_bits(), f32::to_bits(value), "{bits:#x}");
        }
        assert!(half_to_f32(0x7e00).is_nan());
        assert!(half_to_f32(0x7c00).is_infinite());
    }
}
