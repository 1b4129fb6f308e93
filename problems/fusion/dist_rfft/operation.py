"""Fourier transform of real images, split by rows; the spectrum is split by columns."""
import torch
import torch.distributed as dist


def operation(x: torch.Tensor, out: torch.Tensor, h: int) -> None:
    """x: [batch, rows, w], rows = 2 * ceil(h / (2 * world)); out: [batch, cols, h, 2] float."""
    rank, world = dist.get_rank(), dist.get_world_size()
    batch, rows, w = x.shape
    cols, half = out.shape[1], w // 2 + 1
    spectrum = torch.zeros(batch, rows, world * cols, dtype=torch.complex64, device=x.device)
    spectrum[:, :, :half] = torch.fft.rfft(x, dim=2)
    parts = [torch.view_as_real(part).contiguous() for part in spectrum.split(cols, dim=2)]
    received = [torch.empty_like(part) for part in parts]
    dist.all_to_all(received, parts)
    columns = torch.view_as_complex(torch.cat(received, dim=1))[:, :h]
    here = max(0, min(cols, half - rank * cols))
    result = torch.fft.fft(columns[:, :, :here], dim=1).transpose(1, 2)
    out[:, :here] = torch.view_as_real(result.contiguous())


def main() -> None:
    dist.init_process_group("nccl")
    world = dist.get_world_size()
    torch.cuda.set_device(dist.get_rank())
    for batch, h, w in ((1, 64, 64), (4, 128, 128)):
        x = torch.rand(batch, 2 * -(-h // (2 * world)), w, device="cuda") * 2 - 1
        operation(x, torch.empty(batch, -(-(w // 2 + 1) // world), h, 2, device="cuda"), h)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
