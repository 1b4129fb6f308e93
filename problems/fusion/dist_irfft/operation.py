"""Inverse Fourier transform to real images; the spectrum is split by columns, images by rows."""
import torch
import torch.distributed as dist


def operation(f: torch.Tensor, out: torch.Tensor) -> None:
    """f: [batch, cols, h, 2] float; out: [batch, rows, w], rows = 2 * ceil(h / (2 * world))."""
    rank, world = dist.get_rank(), dist.get_world_size()
    batch, cols, h, _ = f.shape
    rows, w = out.shape[1:]
    columns = torch.zeros(batch, cols, world * rows, dtype=torch.complex64, device=f.device)
    columns[:, :, :h] = torch.fft.ifft(torch.view_as_complex(f), dim=2)
    parts = [torch.view_as_real(part).contiguous() for part in columns.split(rows, dim=2)]
    received = [torch.empty_like(part) for part in parts]
    dist.all_to_all(received, parts)
    half = torch.view_as_complex(torch.cat(received, dim=1))[:, : w // 2 + 1]
    here = max(0, min(rows, h - rank * rows))
    out[:, :here] = torch.fft.irfft(half[:, :, :here].transpose(1, 2), n=w, dim=2)


def main() -> None:
    dist.init_process_group("nccl")
    world = dist.get_world_size()
    torch.cuda.set_device(dist.get_rank())
    for batch, h, w in ((1, 64, 64), (4, 128, 128)):
        f = torch.rand(batch, -(-(w // 2 + 1) // world), h, 2, device="cuda") * 2 - 1
        operation(f, torch.empty(batch, 2 * -(-h // (2 * world)), w, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
